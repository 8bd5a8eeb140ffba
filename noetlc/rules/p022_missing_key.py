from noetlc.analysis.guards import OTHER_NAMES
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping
from noetlc.syntax.playbook_parser import OBJECTS, REQUIRED, SUGAR, TITLES
from noetlc.syntax.span import ProblemKind, Span, holds_any
from noetlc.syntax.tree import structs

_REQUIRED = {OBJECTS[name]: (TITLES[name], keys) for name, keys in REQUIRED.items()}

_SHOW = {
    "apiVersion": "add `apiVersion: noetl.io/v2`",
    "kind": "add `kind: Playbook`",
    "metadata": "add `metadata:` with `name` and `path`",
    "workflow": "add `workflow:` with at least one step",
    "in": 'add `in: "{{ workload.items }}"`, or a list',
    "iterator": "add `iterator: item`; the element is then `iter.item`",
    "step": "add `step:` with a name",
    "arcs": "add `arcs:` with a list of `{step: …, when: …}`",
}


class MissingKey(Rule):
    severity = Severity.ERROR
    summary = "A required key is missing."
    why = "Without it there is nothing to run, to loop over, or to route to. The runtime refuses such a playbook."
    example = """
      - step: each_city
        loop:
          in: [Paris, Oslo]
    +     iterator: city
        tool: {kind: noop}
    """
    covers = ("formal §2.1", "formal §2.2", "formal §13", "brief §3.2", "brief §12", "S2", "S44")

    def check(self, model: Model) -> Findings:
        excused = _excused(model)
        for struct in structs(model.playbook):
            title, keys = _REQUIRED.get(type(struct), ("", ()))
            for key in keys:
                if not self._has(struct, key) and not holds_any(struct.span, excused.get(key, [])):
                    yield self._missing(struct, title, key)

    @staticmethod
    def _has(struct: ast.Struct, key: str) -> bool:
        return getattr(struct, ast.attribute(key)) is not None

    def _missing(self, struct: ast.Struct, title: str, key: str) -> Finding:
        help = _SHOW.get(key, f"add `{key}:`")
        if isinstance(struct, ast.Task):
            help = _task_help(struct)
        elif isinstance(struct, ast.Credential) and key == "kind":
            help = (
                "add `kind:` with the form of the secret, such as `bearer_token`, `basic_auth` or `postgres_credential`"
            )
        return self.finding(_where(struct), f"{title} needs `{key}`", help)


def _excused(model: Model) -> dict[str, list[int]]:
    """Places of keys that were given with a wrong value, or misspelt: reported already."""
    found: dict[str, list[int]] = {}
    for problem in model.problems:
        if problem.kind in (ProblemKind.WRONG_TYPE, ProblemKind.UNKNOWN_KEY):
            # A `choose` that is not a list becomes an empty task: it is not `kind` that is missing there.
            keys = ("kind",) if problem.key in SUGAR else (problem.key, problem.suggestion)
            if problem.object.endswith("_else"):  # `else: {do: fail}`: the `then` between is what was forgotten
                keys = ("then",)
            if problem.object == "verdict":  # `then: {do: continue}` in a gate: it says something else than `allow`
                keys = ("allow",)
            if problem.key in OTHER_NAMES:  # the guard is there, under a name that is not its own
                keys = ("when",)
            for key in filter(None, keys):
                found.setdefault(key, []).append(problem.span.start)
    return {key: sorted(offsets) for key, offsets in found.items()}


def _where(struct: ast.Struct) -> Span:
    """Point to the object's name, or to its first key."""
    if isinstance(struct, ast.Task) and struct.label:
        return struct.label.span
    first = next(iter(struct.keys.values()), None)
    return first or Span(struct.span.start, min(struct.span.start + 1, struct.span.end))


def _task_help(task: ast.Task) -> str:
    labelled = [entry for entry in task.extra if isinstance(entry.value, Mapping) and entry.value.get("kind")]
    if labelled and len(labelled) == len(task.extra):
        return "write labelled tasks as a list: " + ", ".join(f"`- {entry.key.text}: …`" for entry in labelled[:2])
    if labelled:
        return f"a labelled task is a mapping of one key: indent the other keys under `{labelled[0].key.text}`"
    return "add `kind:` with a tool, such as `http`, `postgres`, `python` or `noop`"
