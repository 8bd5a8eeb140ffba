from noetlc.rules.rule import ClaimRule, Finding, Findings, Model, Severity, migration_fix
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, Sequence
from noetlc.syntax.span import Problem


class NextList(ClaimRule):
    severity = Severity.ERROR
    summary = "`next` is a list of arcs, or the name of a step, instead of a router with `arcs`."
    why = (
        "The number of arcs that may fire is a setting of the router (`next.spec.mode`), for which a list has no "
        "place. Without a router, the branch would end here."
    )
    example = """
      - step: start
        tool: {kind: noop}
        next:
    -     - step: finish
    +     arcs:
    +       - step: finish
      - step: finish
        tool: {kind: noop}
    """
    covers = ("formal §8.1", "brief §3.2", "brief §12", "step spec §5.5", "step spec §13")
    claims = frozenset({("step", "next")})

    def check(self, model: Model) -> Findings:
        problems = list(self.claimed(model))
        entries = _nexts(model.document.root) if problems else {}
        for problem in problems:
            yield self._word(model, problem, entries.get(problem.span.start))

    def _word(self, model: Model, problem: Problem, entry: MappingEntry | None) -> Finding:
        if entry is None or not (isinstance(entry.value, Sequence) or _is_name(entry.value)):
            return self.finding(problem.span, problem.message, "write `next: {arcs: [{step: …}]}`")
        shape = "a list" if isinstance(entry.value, Sequence) else "a name"
        return self.finding(
            problem.span,
            f"`next` is {shape}, as in the older dialect; it must be a router with `arcs`",
            "write `next: {spec: {mode: exclusive}, arcs: [{step: …, when: …}]}`",
            fix=migration_fix(model),
        )


def _nexts(root: Node | None) -> dict[int, MappingEntry]:
    """Return the `next` of every step, by where its value begins."""
    workflow = root.get("workflow") if isinstance(root, Mapping) else None
    steps = workflow.items if isinstance(workflow, Sequence) else ()
    entries = (entry for step in steps if isinstance(step, Mapping) for entry in step.entries)
    return {entry.value.span.start: entry for entry in entries if entry.key.text == "next"}


def _is_name(node: Node) -> bool:
    return (
        isinstance(node, Scalar)
        and isinstance(node.value, str)
        and not node.is_template
        and node.style not in ("|", ">")
    )
