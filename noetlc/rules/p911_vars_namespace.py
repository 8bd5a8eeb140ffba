from noetlc.analysis.model import Site
from noetlc.analysis.names import NameUse
from noetlc.rules.rule import ClaimRule, Edit, Finding, Findings, Fix, Model, Severity, migration_fix
from noetlc.syntax.span import Problem
from noetlvm.language.scopes import VISIBLE

_VARS = "vars"


class VarsNamespace(ClaimRule):
    severity = Severity.ERROR
    summary = "A template reads `vars`, or a step has a `vars` block, as the older dialect did."
    why = "`vars` no longer exists: the value is undefined, and a task that needs it fails."
    example = """
      - step: fetch
        tool:
    -     - page: {kind: http, url: "https://api.example.com/items?page={{ vars.page }}"}
    +     - page: {kind: http, url: "https://api.example.com/items?page={{ ctx.page | default(1) }}"}
    """
    covers = ("step spec §2", "S6", "S11")
    claims = frozenset({("step", _VARS)})

    def check(self, model: Model) -> Findings:
        yield from super().check(model)
        if model.is_reported(model.playbook.span, ("playbook", _VARS), ("step", _VARS)):
            return  # what declares them is reported, and its readers change with it
        for reading in model.readings:
            for use in reading.names.uses:
                if (
                    use.name == _VARS
                    and use.whole is not use.node
                    and not model.definitions.defines(_VARS, reading.site)
                ):
                    yield self._use(model, reading.site, use)

    def word(self, model: Model, problem: Problem) -> Finding:
        return self.finding(
            problem.span,
            "a step has no `vars`",
            "write what they begin with in a first task: `set_iter` in a loop, `set_ctx` elsewhere",
            fix=migration_fix(model),
        )

    def _use(self, model: Model, site: Site, use: NameUse) -> Finding:
        scope = "iter" if site.loop_depth and "iter" in VISIBLE[site.position] else "ctx"
        place = model.place(site, use.node.name_span)
        is_plain = model.source.text[place.start : place.end] == _VARS
        return self.finding(
            place,
            "`vars` belongs to the older dialect: a step has no state of its own",
            f"write `{scope}`, and `set_{scope}` where the value is set",
            fix=Fix(f"read it from `{scope}`", (Edit(place, scope),), safe=False) if is_plain else None,
        )
