import re

from noetlc.analysis.model import Site
from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity
from noetlc.syntax import template_ast as t
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.template_parser import parse_template

_BOOLEANS = frozenset({"true", "false"})
_YAML_1_1 = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_HALF_MARKS = re.compile(r"[$%#]?\{([^{}]*)\}+")
_SIMPLE = (t.Name, t.Const, t.Getattr, t.Getitem, t.Call)


class TextGuard(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A `when` is text instead of one `{{ … }}`, so it is always true."
    why = (
        "Text that is not empty is true. The rule always matches, or the arc always fires, and the rules after it "
        "never apply."
    )
    example = """
      - step: start
        next:
          arcs:
            - step: retry_later
    -         when: ctx.failed > 0
    +         when: "{{ ctx.failed > 0 }}"
            - step: finish
      - step: retry_later
        tool: { kind: noop }
      - step: finish
        tool: { kind: noop }
    """
    covers = ("formal §3.1", "S8", "S9")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for site in model.sites:
            guard = site.scalar
            if not site.is_guard or not isinstance(guard.value, str):
                continue
            reported = _template(guard) if guard.is_template else _plain(model, site)
            if reported is not None:
                message, help, corrected = reported
                yield self.finding(guard.span, message, help, fix=_fix(model, guard, corrected))


_Explanation = tuple[str, str, str]
"""A message, a help, and the whole guard as it was probably meant, or an empty string."""


def _plain(model: Model, site: Site) -> _Explanation | None:
    text = site.scalar.text.strip()
    if text.lower() in _BOOLEANS:
        return None
    if not text:
        return "this `when` is empty text, so it never holds", "write `{{ … }}` around a condition", ""
    if text.lower() in _YAML_1_1:
        meant = _YAML_1_1[text.lower()]
        return f"`{text}` is text here, not a boolean, so this `when` always holds", f"write `{meant}`", meant
    inner = _HALF_MARKS.sub(r"\1", text).strip()
    is_prose = inner.isidentifier() and not model.definitions.defines(inner, site)
    corrected = "" if is_prose else _as_expression(inner)
    help = f"write `{corrected}`" if corrected else "write a condition between `{{` and `}}`"
    return "this `when` is text without `{{ … }}`, so it always holds", help, corrected


def _template(guard: Scalar) -> _Explanation | None:
    template = parse_template(guard.text)
    if (
        template.problems
        or template.is_single
        or any(not isinstance(part, t.Data | t.Output) for part in template.parts)
    ):
        return None
    outputs = [part for part in template.parts if isinstance(part, t.Output)]
    text = "".join(part.text for part in template.parts if isinstance(part, t.Data)).strip()
    if len(outputs) == 1 and not text:
        return _padded(guard, outputs[0])
    corrected = _joined(template) if outputs else ""
    help = f"write `{corrected}`" if corrected else "write the whole condition between one `{{` and one `}}`"
    return "this `when` is text with values in it, so it always holds", help, corrected


def _padded(guard: Scalar, output: t.Output) -> _Explanation | None:
    """Spaces around the marks make the value text; only `true` and `false` are still booleans (S9)."""
    if _gives_boolean(output.expression):
        return None
    return (
        "spaces or comments around `{{ … }}` make this `when` text, so `0`, `[]` and empty values would be true",
        "remove the text around `{{ … }}`",
        guard.text[output.span.start : output.span.end],
    )


def _gives_boolean(expression: t.Expression) -> bool:
    if isinstance(expression, t.And | t.Or):
        return all(_gives_boolean(operand) for operand in expression.operands)
    if isinstance(expression, t.Const):
        return isinstance(expression.value, bool)
    return isinstance(expression, t.Compare | t.Test | t.Not)


def _joined(template: t.Template) -> str:
    """Return text and values as one expression: `{{ a }} and {{ b }}` as `{{ a and b }}`."""
    pieces: list[str] = []
    for part in template.parts:
        if isinstance(part, t.Data):
            pieces.append(part.text)
        elif isinstance(part, t.Output):
            written = template.text[part.expression.span.start : part.expression.span.end]
            pieces.append(written if isinstance(part.expression, _SIMPLE) else f"({written})")
    return _as_expression("".join(pieces).strip())


def _as_expression(text: str) -> str:
    """Return the text between marks if it can be read as an expression."""
    if "\n" in text or "{{" in text or "}}" in text:
        return ""
    template = parse_template(f"{{{{ {text} }}}}")
    return template.text if not template.problems and template.is_single else ""


def _fix(model: Model, guard: Scalar, corrected: str) -> Fix | None:
    raw = model.source.text[guard.span.start : guard.span.end]
    if not corrected or guard.style in ("|", ">") or "\n" in raw:
        return None
    return Fix(f"write `{corrected}`", (Edit(guard.span, _quoted(corrected)),), safe=False)


def _quoted(text: str) -> str:
    """Write a value as YAML: a boolean bare, a template between the quotes that it does not use itself."""
    if text in _BOOLEANS:
        return text
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'
