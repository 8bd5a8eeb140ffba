from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import template_ast as t
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.template_ast import walk


class TextArithmetic(Rule):
    severity = Severity.WARNING
    summary = "A template calculates with a workload value whose default is text."
    why = (
        "Arithmetic with text fails when the task runs, unless the request contains a number. Quotes around a number "
        "in `workload` are the usual cause."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: pages, path: demo/pages}
    - workload: {page: "1"}
    + workload: {page: 1}
      workflow:
        - step: start
          tool: {kind: http, url: "https://example.com/{{ workload.page + 1 }}"}
    """
    covers = ("S8", "S12")

    def check(self, model: Model) -> Findings:
        for site, template in model.template_sites:
            for node in walk(template) if "workload" in template.text else ():
                side = _text_side(model, node)
                if side is not None:
                    path = f"workload.{side.name}"
                    message = f"the default of `{path}` is text, and arithmetic needs numbers"
                    help = f"write a number in `workload`, or `{path} | int`"
                    yield self.finding(model.place(site, side.span), message, help)


def _text_side(model: Model, node: object) -> t.Getattr | None:
    """Return the operand of a calculation with a number that reads text from `workload`."""
    if not isinstance(node, t.Binary):
        return None
    for side, other in ((node.left, node.right), (node.right, node.left)):
        match side:
            case t.Getattr(node=t.Name(name="workload")) if _is_number(other) and _is_text(model, side.name):
                return side
    return None


def _is_number(node: t.Expression) -> bool:
    return isinstance(node, t.Const) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _is_text(model: Model, name: str) -> bool:
    value = model.playbook.workload.get(name) if model.playbook.workload else None
    return isinstance(value, Scalar) and isinstance(value.value, str) and not value.is_template
