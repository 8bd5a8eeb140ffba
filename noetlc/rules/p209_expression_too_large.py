from noetlc.rules.rule import Severity, TemplateProblemRule

_DEEP = "(" * 80 + "ctx.total" + ")" * 80


class ExpressionTooLarge(TemplateProblemRule):
    severity = Severity.ERROR
    summary = "A template is too long or too deeply nested."
    why = (
        "Evaluation is limited in time and memory, so that one template cannot stop a server. A template beyond the "
        "limits is refused by lint and at run time."
    )
    example = f"""
      - step: start
        tool:
    -     - total: {{ kind: python, args: {{ total: "{{{{ {_DEEP} }}}}" }}, code: "result = total" }}
    +     - total: {{ kind: python, args: {{ total: "{{{{ workload.total }}}}" }}, code: "result = total" }}
    """
    covers = ("S12",)
    kinds = frozenset({"depth", "size"})
