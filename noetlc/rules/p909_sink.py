from noetlc.analysis.inputs import old_inputs
from noetlc.migrate.dialect import SINKS
from noetlc.rules.rule import ClaimRule, Finding, Findings, Model, Severity, migration_fix
from noetlc.syntax.span import Problem, Span
from noetlvm.language.tool_kinds import find_kind

_SINK = "sink"


class Sink(ClaimRule):
    severity = Severity.ERROR
    summary = "A task has `kind: sink`, or a step or task has a `sink` or `save` block."
    why = "There is no such tool and no such block: the data would be computed and discarded."
    example = """
    - - step: load
    -   tool:
    -     - fetch: {kind: http, url: "https://api.example.com/items"}
    -     - save: {kind: sink, table: items}
    + apiVersion: noetl.io/v2
    + kind: Playbook
    + metadata: {name: load, path: shop/load}
    + keychain:
    +   - {name: pg_main, kind: postgres_credential}
    + workflow:
    +   - step: load
    +     tool:
    +       - fetch: {kind: http, url: "https://api.example.com/items"}
    +       - save:
    +           kind: postgres
    +           auth: pg_main
    +           command: "INSERT INTO items (body) VALUES (%(body)s)"
    +           params: {body: "{{ _prev.data | tojson }}"}
    """
    covers = ("formal §9.2", "brief §10", "step spec §10", "step spec §13")
    claims = frozenset(("step", word) for word in SINKS)

    def check(self, model: Model) -> Findings:
        yield from super().check(model)
        for word in SINKS:
            for entry in old_inputs(model, word):
                yield self._finding(model, entry.key.span, f"a task has no `{word}`")
        sinks = [view.task.kind for view in model.tasks if view.task.kind and view.kind == _SINK]
        if not sinks or model.allow_unknown_kinds or _SINK in model.allowed_kinds or find_kind(_SINK):
            return
        for kind in sinks:
            yield self._finding(model, kind.span, "there is no tool kind `sink`")

    def word(self, model: Model, problem: Problem) -> Finding:
        return self._finding(model, problem.span, f"a step has no `{problem.key}`")

    def _finding(self, model: Model, span: Span, message: str) -> Finding:
        return self.finding(
            span,
            f"{message}: use a task to store data",
            "write a task of the storage's own kind (`postgres`, `duckdb`, `http`, …) after the one "
            "whose result it stores, and that task returns a reference",
            fix=migration_fix(model),
        )
