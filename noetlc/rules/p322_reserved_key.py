from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, Scalar, Sequence
from noetlc.syntax.tree import structs

_HOOK = "write a task before or after this one"
_LATER = "remove it, or leave it as a comment"

_RESERVED: dict[type[ast.Struct], dict[str, str]] = {
    ast.ExecutorDefaults: {
        "timeouts": "write `timeout` in `executor.spec`, or in `executor.spec.http` for one kind of tool",
        "resources": "write the setting itself in `executor.spec`, such as `memory_mb` in `executor.spec.python`",
    },
    ast.ExecutorResults: {
        "reference_first": "large results are stored by reference; `limits.max_payload_bytes` sets the size"
    },
    ast.ExecutorPolicy: {"placement": _LATER, "cost": _LATER, "backends": _LATER},
    ast.Emit: {"events": "every step is recorded anyway; to send a message, write a task"},
    ast.StepPolicy: {
        "tracing": "every event of a step has `step_run_id` and a time already",
        "quotas": "`lifecycle` limits time, `max_in_flight` how much runs at once",
        "compensation": "write an arc for `event.name == 'step.failed'` to a step that undoes it",
    },
    ast.LoopPolicy: {
        "ordering": "results are in the order of the elements; `mode: sequential` runs them in it",
        "backpressure": "`max_in_flight` sets how many iterations may run at once",
        "partitioning": "loop over the parts, with a `loop` inside",
    },
    ast.TaskPolicy: {"before": _HOOK, "after": _HOOK, "finally": _HOOK},
    ast.RouterPolicy: {
        "priority": "arcs are tried in the order in which they are written",
        "dedupe": "`exclusive` fires one arc",
        "partitioning": _LATER,
    },
    ast.Arc: {"spec": _LATER},
}
"""By object, the keys without effect, and what to write instead."""

RESERVED_SETTINGS = {
    "resources": "write the setting itself, such as `memory_mb` in `executor.spec.python`",
    "sandbox": "a `python` task always runs in a sandbox; its limits are settings of `executor.spec.python`",
    "telemetry": "every event has `trace_id` and a time; `noetlvm events --json` prints them",
    "timeouts": "write `timeout` in `executor.spec`, or in `executor.spec.http` for one kind of tool",
    "tracing": "every event has `trace_id` and a time; `noetlvm events --json` prints them",
}
"""Keys of `executor.spec` that the definition names as defaults (brief §2.2), and what to write instead."""


class ReservedKey(Rule):
    severity = Severity.NOTE
    summary = "A key is reserved by the language and has no effect."
    why = (
        "The language reserves these keys without a definition, so they have no effect. `quotas` or `finally` "
        "suggests a limit or a cleanup that does not happen."
    )
    example = """
      - step: fetch
    -   spec: {policy: {quotas: {calls: 100}}}
    +   spec: {policy: {lifecycle: {timeout_s: 30}}}
        tool:
          - get: {kind: http, url: "https://example.org/items"}
    """
    covers = ("brief §2.2", "step spec §5.1", "step spec §5.2.2", "step spec §5.3", "step spec §5.4", "step spec §5.5")

    claims = frozenset({("executor", "requires")})

    def check(self, model: Model) -> Findings:
        for problem in self.claimed(model):
            help = "the tools that a playbook needs are known from its tasks; `noetlc inspect` lists them"
            yield self.finding(problem.span, f"`{problem.key}` has no effect", help)
        spec = model.playbook.executor_spec
        for entry in spec.extra if spec else ():
            if entry.key.text in RESERVED_SETTINGS and _says_something(entry.value):
                message = f"`{entry.key.text}` in `executor.spec` has no effect"
                yield self.finding(entry.key.span, message, RESERVED_SETTINGS[entry.key.text])
        for struct in structs(model.playbook):
            for key, instead in _RESERVED.get(type(struct), {}).items():
                if _says_something(getattr(struct, ast.attribute(key))):
                    yield self.finding(struct.key_span(key), f"`{key}` is reserved and has no effect", instead)


def _says_something(value: object) -> bool:
    """Return whether a value is more than an empty place."""
    if isinstance(value, Sequence):
        return bool(value.items)
    if isinstance(value, Mapping):
        return bool(value.entries)
    return value.value is not None if isinstance(value, Scalar) else value is not None
