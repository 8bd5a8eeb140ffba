from noetlc.analysis.taint import Splice, splices
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity

_PARAMETERS = {"postgres": "%(name)s", "duckdb": "$name"}


class InterpolatedSql(Rule):
    severity = Severity.WARNING
    summary = "A template puts data into the text of an SQL command instead of its parameters."
    why = (
        "A quote in the data breaks the command, and malicious data can change it (SQL injection). Once data is part "
        "of the text, the database cannot distinguish it from the command."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: orders, path: shop/orders}
      keychain:
        - {name: pg_main, kind: postgres_credential}
      workload: {customer: ""}
      workflow:
        - step: load
          tool:
            - orders:
                kind: postgres
                auth: pg_main
    -           command: "SELECT * FROM orders WHERE customer = '{{ workload.customer }}'"
    +           command: "SELECT * FROM orders WHERE customer = %(customer)s"
    +           params: {customer: "{{ workload.customer }}"}
    """

    def check(self, model: Model) -> Findings:
        for splice in splices(model, "sql"):
            yield self._whole(splice) if splice.is_whole else self._part(splice)

    def _part(self, splice: Splice) -> Finding:
        parameter = _PARAMETERS.get(splice.site.task.kind if splice.site.task else "", "a parameter")
        return self.finding(
            splice.span,
            f"`{splice.text}` becomes part of the SQL text and can change its meaning",
            f"write `{parameter}` in the text and give the value in `params`; for the name of a table or column, "
            "choose among literals: `{{ 'a' if … else 'b' }}`",
        )

    def _whole(self, splice: Splice) -> Finding:
        return self.finding(
            splice.span,
            f"the whole SQL text comes from `{splice.text}`: everyone who sets it can run any command",
            "write the SQL here and use data for its parameters only (`params`)",
        )
