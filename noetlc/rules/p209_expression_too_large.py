from noetlc.rules.rule import Severity, TemplateProblemRule

_DEEP = "(" * 80 + "ctx.total" + ")" * 80


class ExpressionTooLarge(TemplateProblemRule):
    severity = Severity.ERROR
    summary = "A template is longer, or nests deeper, than templates may."
    why = (
        "Evaluation is bounded in time and memory, so that one template cannot take a server down. A template beyond "
        "the limits is refused, here and at run time."
    )
    example = f"""
      - step: start
        tool:
    -     - total: {{ kind: python, args: {{ total: "{{{{ {_DEEP} }}}}" }}, code: "result = total" }}
    +     - total: {{ kind: python, args: {{ total: "{{{{ workload.total }}}}" }}, code: "result = total" }}
    """
    covers = ("S12",)
    kinds = frozenset({"depth", "size"})
