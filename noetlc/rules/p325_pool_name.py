from noetlc.analysis.placement import named_pools
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlvm.language.names import has_control
from noetlvm.language.placement import POOL_CHARS_MAX


class PoolName(Rule):
    severity = Severity.ERROR
    summary = "The `pool` of the executor, a step or a loop is not a valid name of a worker pool."
    why = (
        "Workers declare their pools when they start (`noetlvm worker --pool NAME`), so the name must be a literal. "
        "A step waits forever if no worker serves its pool."
    )
    example = """
      - step: train
    -   spec: {pool: "{{ workload.pool }}"}
    +   spec: {pool: gpu}
        tool: {kind: noop}
    """
    covers = ("S22", "S38")

    def check(self, model: Model) -> Findings:
        for pool in named_pools(model.playbook, model.steps):
            if pool.is_template:
                message = "a worker pool is a plain name, and this is a template"
            elif not isinstance(pool.value, str) or not pool.value.strip():
                message = f"the name of a worker pool is text, not `{pool.text}`"
            elif len(pool.value) > POOL_CHARS_MAX:
                message = f"the name of a worker pool has at most {POOL_CHARS_MAX} characters, and this one has more"
            elif has_control(pool.value):
                message = "the name of a worker pool has a control character"
            else:
                continue
            yield self.finding(pool.span, message, "write the name of a pool that workers serve, such as `gpu`")
