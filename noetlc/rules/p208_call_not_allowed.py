import re
from collections.abc import Iterator

from noetlc.analysis.names import TemplateNames
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import template_ast as t
from noetlc.syntax.span import Span
from noetlvm.language.filters import FILTERS, FUNCTIONS, REJECTED_FUNCTIONS
from noetlvm.language.methods import METHODS, REJECTED_METHODS
from noetlvm.nearest import did_you_mean

_PYTHON_INTERNAL = re.compile(r"__\w+__")


class CallNotAllowed(Rule):
    severity = Severity.ERROR
    summary = "A template calls an unsupported function or method, or reads a Python internal."
    why = (
        "Templates read data and call a fixed list of pure functions. Anything else is undefined at run time, so the "
        "task fails. Access to Python would allow a template to take over the worker."
    )
    example = """
      - step: start
        tool:
          - collect:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: { do: continue, set_ctx: { seen: "{{ workload.seen.append(1) }}" } }
    +                   then: { do: continue, set_ctx: { seen: "{{ workload.seen + [1] }}" } }
    """
    covers = ("S12",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for reading in model.readings:
            for span, message, help in (*_calls(reading.names), *_internals(reading.names)):
                yield self.finding(model.place(reading.site, span), message, help)


def _internals(names: TemplateNames) -> Iterator[tuple[Span, str, str]]:
    for access in names.accesses:
        if _PYTHON_INTERNAL.fullmatch(access.name):
            yield access.span, f"`{access.name}` is part of Python, not of the data", "read fields of the data only"


def _calls(names: TemplateNames) -> Iterator[tuple[Span, str, str]]:
    for call in names.calls:
        callee = call.node
        if isinstance(callee, t.Getattr):
            if callee.name not in METHODS and not _PYTHON_INTERNAL.fullmatch(callee.name):
                yield callee.name_span, f"`.{callee.name}()` cannot be called in a template", _method_help(callee.name)
        elif isinstance(callee, t.Name):
            if callee.name not in FUNCTIONS and id(call) not in names.callable_loops:
                yield callee.name_span, f"there is no function `{callee.name}`", _function_help(callee.name)
        elif not isinstance(callee, t.Error):
            yield callee.span, "only functions and methods can be called", "remove the parentheses after it"


def _method_help(name: str) -> str:
    if name in REJECTED_METHODS:
        return REJECTED_METHODS[name]
    if name in FILTERS:
        return f"use the filter: `x | {name}`"
    return did_you_mean(name, METHODS) or "templates call only methods that read text, lists and mappings"


def _function_help(name: str) -> str:
    if name in REJECTED_FUNCTIONS:
        return REJECTED_FUNCTIONS[name]
    if name in FILTERS:
        return f"use the filter: `x | {name}`"
    if name in METHODS:
        return f"it is a method: write `x.{name}(…)`"
    return (
        did_you_mean(name, FUNCTIONS) or "templates have the functions `range` and `dict`; compute the rest in a task"
    )
