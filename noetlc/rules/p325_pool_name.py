from noetlc.analysis.placement import named_pools
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlvm.language.names import has_control
from noetlvm.language.placement import POOL_CHARS_MAX


class PoolName(Rule):
    severity = Severity.ERROR
    summary = (
        "`pool` of the executor, a step or a loop is not the name of a worker pool: it is a template, a number "
        "or too long."
    )
    why = (
        "Workers declare the pools that they serve when they start (`noetlvm worker --pool NAME`), so a name must be a "
        "literal. A step whose pool no worker serves waits forever."
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
                message = f"the name of a worker pool has up to {POOL_CHARS_MAX} characters, and this has more"
            elif has_control(pool.value):
                message = "the name of a worker pool has a control character"
            else:
                continue
            yield self.finding(pool.span, message, "write a name that workers are started with, such as `gpu`")
