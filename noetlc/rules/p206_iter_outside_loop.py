from noetlc.analysis.model import Site
from noetlc.analysis.names import NameUse
from noetlc.rules.p305_set_iter_outside_loop import writers_without_loop, written_names
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.span import Span
from noetlvm.language.scopes import TemplatePosition


class IterOutsideLoop(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A template reads `iter` where there is no loop, or `iter.parent` beyond the outermost loop."
    why = "There is no iteration there, so the value is undefined: guards on it are false, and inputs with it fail."
    example = """
      - step: start
    +   loop: { in: "{{ workload.items }}", iterator: item }
        tool:
          - fetch: { kind: http, url: "https://example.com/items/{{ iter.item.id }}" }
    """
    covers = ("formal §3.2", "formal §7.1", "step spec §6.4", "brief §7.4", "S11", "S28")

    def check(self, model: Model) -> Findings:
        for reading in model.readings:
            site = reading.site
            if not reading.is_visible("iter") or site.owner is None or site.owner.in_workbook:
                continue
            for use in reading.names.uses:
                if use.name == "iter":
                    yield from self._check(model, site, use)

    def _check(self, model: Model, site: Site, use: NameUse) -> Findings:
        depth = site.loop_depth
        if depth == 0:
            writers = writers_without_loop(model, site.owner) if site.owner else []
            if use.fields and use.fields[0].name in written_names(then for _, then in writers):
                return  # P305 reports the step that writes it
            yield self.finding(model.place(site, use.node.span), *_no_loop(site))
            return
        parents = _parents(use)
        if len(parents) >= depth:
            around = "there is 1 loop" if depth == 1 else f"there are {depth} loops"
            yield self.finding(
                model.place(site, parents[depth - 1]),
                f"`iter{'.parent' * depth}` goes beyond the outermost loop: {around} around this",
                f"`iter{'.parent' * (depth - 1)}` is the outermost iteration here",
            )


def _parents(use: NameUse) -> list[Span]:
    """Return the places of the leading `.parent` fields."""
    found: list[Span] = []
    for field in use.fields:
        if field.name != "parent":
            break
        found.append(field.span)
    return found


def _no_loop(site: Site) -> tuple[str, str]:
    if site.position in (TemplatePosition.LOOP_IN, TemplatePosition.LOOP_SPEC):
        return (
            f"`iter` does not exist in the `{site.role}` of the outermost loop: no iteration has begun",
            "take the value from `workload`, `ctx` or `args`",
        )
    name = site.owner.name if site.owner else ""
    return (
        f"`iter` exists only inside a loop, and step `{name}` has none",
        "give the step a `loop`, or store the value in `ctx` with `set_ctx`",
    )
