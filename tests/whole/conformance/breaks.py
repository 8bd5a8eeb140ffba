"""Deliberate breaks of lint and the compiler: each makes the code disobey one sentence until a test is over."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import pytest

from noetlc.analysis.model import Model, thens
from noetlc.analysis.names import NameUse
from noetlc.analysis.routers import choices
from noetlc.canon import expansion
from noetlc.canon import flow as canon_flow
from noetlc.codegen import expressions, statements
from noetlc.codegen import program as program_code
from noetlc.finding import Finding
from noetlc.net import net as net_module
from noetlc.net.net import StepSummary
from noetlc.rules.catalogue import rules_by_code
from noetlc.rules.rule import Rule
from noetlc.syntax import ast, nodes, yaml_reader
from noetlc.syntax import template_ast as t
from noetlc.syntax.span import ProblemKind, Span
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.verify import expressions as verify_expressions
from noetlvm.expr import operations
from noetlvm.record import changed
from tests.whole.conformance import test_verify_cases

Break = Callable[[pytest.MonkeyPatch], None]


def around(target: Any, name: str, change: Callable[..., Any]) -> Break:
    """Break: a function, or the getter of a property, becomes `change`, which gets the function and then its arguments.

    A call that the function would not take fails with a TypeError, which is no proof: so a break cannot rot when the
    function changes.
    """

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        known = inspect.getattr_static(target, name)
        made = known.fget if isinstance(known, property) else getattr(known, "__func__", known)
        takes = inspect.signature(made)

        @wraps(made)
        def call(*given: Any, **more: Any) -> Any:
            takes.bind(*given, **more)
            return change(made, *given, **more)

        kind = type(known) if isinstance(known, property | staticmethod | classmethod) else lambda function: function
        monkeypatch.setattr(target, name, kind(call))

    return breaks


def returning(target: Any, name: str, value: Any) -> Break:
    """Break: a function returns this, whatever its arguments are."""
    return around(target, name, lambda *_, **__: value)


def replaced(target: Any, name: str, value: Any) -> Break:
    """Break: something else stands under this name; a function takes what the function before it took."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        known = getattr(target, name)
        if inspect.isfunction(known):
            assert parameters(value) == parameters(known), f"{name} is replaced by what takes other arguments"
        monkeypatch.setattr(target, name, value)

    return breaks


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def item(table: Any, key: str, value: Any) -> Break:
    """Break: a table has something else under this key, which it must have."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        assert key in table
        monkeypatch.setitem(table, key, value)

    return breaks


def silent(*codes: str) -> Break:
    """Break: these rules find nothing."""
    return together(*(around(rules_by_code()[code], "check", lambda *_: iter(())) for code in codes))


def together(*breaks: Break) -> Break:
    """Break: all of these."""

    def all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
        for one in breaks:
            one(monkeypatch)

    return all_of_them


def finds(code: str, **other: Any) -> Break:
    """Break: the findings of a rule have another text, or no fix."""
    rule = rules_by_code()[code]
    return around(rule, "check", lambda check, *given: (changed(found, **other) for found in check(*given)))


def refuses(spans: Callable[[Model], Iterable[Span]]) -> Break:
    """Break: lint takes something for an error that is allowed."""

    def check_more(check: Callable[..., Iterator[Finding]], rule: Rule, model: Model) -> Iterator[Finding]:
        yield from check(rule, model)
        yield from (rule.finding(span, "refused", "") for span in spans(model))

    return around(rules_by_code()["P022"], "check", check_more)


def refuses_steps(is_refused: Callable[[ast.Step], bool]) -> Break:
    return refuses(lambda model: (one.step.span for one in model.owners if one.step and is_refused(one.step)))


def refuses_rules(is_refused: Callable[[ast.Then], bool]) -> Break:
    return refuses(
        lambda model: (then.span for view in model.tasks for _, then in thens(view.task) if is_refused(then))
    )


def refuses_directive(word: str) -> Break:
    return refuses_rules(lambda then: then.do is not None and then.do.text == word)


def has_admission(step: ast.Step) -> bool:
    policy = step.spec.policy if step.spec else None
    return policy is not None and policy.admit is not None


NO_PROBLEM_IS_REPORTED = returning(sys.modules["noetlc.parse"], "_described", {"kind": "", "line": 0, "column": 0})
"""Break: the front end accepts everything."""


def _unnamed(labelled: Callable[..., Any], entries: Any, prefix: str = "") -> Iterator[tuple[Any, str]]:
    for entry, label in labelled(entries, prefix):
        is_named = isinstance(entry, ast.Task) and entry.label is not None
        yield entry, label if is_named else f"{prefix}unnamed"


def _numbered(_labelled: Callable[..., Any], entries: Any, prefix: str = "") -> Iterator[tuple[Any, str]]:
    unnamed = 0
    for entry in entries:
        unnamed += entry.label is None
        yield entry, entry.label.text if entry.label else f"{prefix}task_{unnamed}"


OTHER_LABELS = around(ast, "labelled", _unnamed)
"""Break: a task without a label gets one that does not depend on its position."""
NUMBERS_OF_UNNAMED_TASKS = around(ast, "labelled", _numbered)
"""Break: the number in a generated label counts tasks without a label only."""


def bare_names_in(*order: str) -> Break:
    """Break: a name without a namespace is looked for in another order."""
    return replaced(operations, "BARE_NAME_ORDER", order)


def sugar_without(word: str, ending: str) -> Break:
    """Break: a block expands without the jump that has this label."""
    return _sugar(word, lambda part: None if _has_label(part, ending) else part)


def sugar_untested(word: str, ending: str) -> Break:
    """Break: what has this label does not test, and does not jump."""
    return _sugar(word, lambda part: canon_flow.mark(part.span, part.label.text) if _has_label(part, ending) else part)


def _sugar(word: str, change: Callable[[Any], Any]) -> Break:
    expand = canon_flow._EXPANSIONS[word]

    def parts(block: Any, label: str) -> Iterator[Any]:
        yield from (one for part in expand(block, label) if (one := change(part)) is not None)

    return item(canon_flow._EXPANSIONS, word, parts)


def _has_label(part: Any, ending: str) -> bool:
    return isinstance(part, ast.Task) and part.label is not None and part.label.text.endswith(ending)


def sugar_as(word: str, other: str) -> Break:
    """Break: a block expands as one of another kind does."""
    return item(canon_flow._EXPANSIONS, word, canon_flow._EXPANSIONS[other])


def specs_merge(merge: Callable[[Any, Any], Any]) -> Break:
    """Break: an inner spec is laid over an outer one in another way."""
    return around(expansion, "_merge", lambda _made, outer, inner: merge(outer, inner))


def joined_lists(outer: Any, inner: Any) -> Any:
    if isinstance(outer, nodes.Sequence) and isinstance(inner, nodes.Sequence):
        return nodes.Sequence(inner.span, (*outer.items, *inner.items))
    return inner


def _by_mode(admit: Callable[..., Any], found: Any, *more: Any) -> Any:
    if found is not None and found.mode is not None and found.mode.text == "inclusive":
        found = changed(found, rules=tuple(reversed(found.rules)))
    return admit(found, *more)


LAST_RULE_ADMITS = around(program_code, "_admit", _by_mode)
"""Break: with `mode: inclusive`, the last admission rule decides."""


# ---- templates


def templates(lower: Callable[..., None]) -> Break:
    """Break: a template is compiled by `lower`, which gets the function that it replaces first."""

    def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("_piece", "_guard"):  # they cache what templates become
            monkeypatch.setattr(expressions, name, getattr(expressions, name).__wrapped__)

    return together(uncached, around(expressions, "_template", lower))


def text_around_is_dropped(made: Callable[..., None], code: Any, template: t.Template, *more: Any) -> None:
    """Text around one `{{ … }}` does not make a string."""
    outputs = [part for part in template.parts if isinstance(part, t.Output)]
    if len(outputs) == 1 and all(isinstance(part, t.Data | t.Output) for part in template.parts):
        inner = template.text[outputs[0].span.start : outputs[0].span.end]
        template = parse_template(inner)
    made(code, template, *more)


def one_template_is_text(made: Callable[..., None], code: Any, template: t.Template, *more: Any) -> None:
    """A string that is one `{{ … }}` gives a text, as any other template does."""
    if template.is_single:
        template = changed(template, parts=(*template.parts, t.Data(template.parts[0].span, "")))
    made(code, template, *more)


def statement_is_nothing(kind: type[t.Part]) -> Break:
    """Break: a statement of this kind gives no text."""
    return together(templates(lambda made, *given: made(*given)), item(statements._LOWER, kind, lambda *_: None))


def _upper(plain: Callable[..., Any], node: nodes.Node) -> Any:
    found = plain(node)
    return found.upper() if isinstance(found, str) else found


PLAIN_TEXTS_CHANGE = around(nodes, "plain", _upper)
"""Break: a text without marks does not stay as it is."""


# ---- nets


def nets(*breaks: Break) -> Break:
    """Break: the analysis of nets uses something else; its caches of routers are empty."""
    return together(*(replaced(net_module, cached, {}) for cached in ("_guards", "_choices", "_labels")), *breaks)


def last_step(_entry: Any, model: Model, *_: Any) -> Any:
    """A playbook begins with the step that is written last."""
    return model.steps[-1].step.text


def failures_count(events: Callable[..., tuple[str, ...]], step: StepSummary) -> tuple[str, ...]:
    """`best_effort` does not keep a loop from failing."""
    return events(changed(step, best_effort=False))


def all_events_at_once(_made: Any, self: Any, step: StepSummary, _event: str) -> Any:
    """A run ends with all of its boundary events."""
    return tuple(choice for event in step.events for choice in choices(self._formulas(step, event), step.inclusive))


def something_fires(router: Any, self: Any, step: StepSummary, event: str) -> Any:
    """Where no arc holds, the first one fires."""
    found = router(self, step, event)
    if not step.arcs:
        return found
    return tuple(tuple(fired or (0,) for fired in choice) for choice in found) or (((0,),),)


def unguarded_arcs_need_success(made: Any, self: Any, step: StepSummary, event: str) -> Any:
    formulas = made(self, step, event)
    failed = event == "step.failed"
    return [False if failed and arc.text is None else formula for arc, formula in zip(step.arcs, formulas, strict=True)]


# ---- YAML


def unreported(kind: ProblemKind) -> Break:
    """Break: the reader accepts what is a problem of this kind."""
    return around(
        yaml_reader._Reader,
        "_problem",
        lambda report, self, found, *more: None if found is kind else report(self, found, *more),
    )


_WORDS = {"yes": True, "no": False, "on": True, "off": False}
WORDS_ARE_BOOLEANS = around(
    yaml_reader, "plain_value", lambda plain, text: _WORDS[text] if text in _WORDS else plain(text)
)
"""Break: as in YAML 1.1, `yes`, `no`, `on` and `off` are booleans."""


ALIASES_ARE_NULL = around(
    yaml_reader._Reader,
    "_alias",
    lambda _made, self, event: self._place(nodes.Scalar(self._span(event), None, "", ""), 1, None),
)


MORE_ALIASES = around(
    yaml_reader._Reader, "_repeat", lambda repeat, self, weight, span: repeat(self, weight // 1_000, span)
)
"""Break: aliases may repeat so many nodes that the expansion of the case takes more than the limit."""


# ---- the compiler


WITHOUT_CONSTRUCTS = around(
    program_code.SourceMap, "add", lambda add, self, address, _, *offsets: add(self, address, "", *offsets)
)
"""Break: the debug map does not say which construct a label comes from."""


PARALLEL_LOOPS_STAY = around(program_code, "_loop", lambda loop, *given: loop(*given[:-1], True))
"""Break: without `exec`, the iterations of a parallel loop stay on one worker."""


def _lead_back(lower: Callable[..., Any], step: ast.Step, *more: Any, **options: Any) -> Any:
    if not step.tool and step.next is None:
        step = changed(step, next=ast.Router(step.span, arcs=(ast.Arc(step.span, step=step.step),)))
    return lower(step, *more, **options)


EMPTY_STEPS_WORK = around(program_code, "lower_step", _lead_back)
"""Break: an empty step leads to the first one again."""


def refuses_executors(spot: Callable[[ast.Executor], Any]) -> Break:
    """Break: an `executor` with a key that is allowed is refused."""

    def spans(model: Model) -> Iterable[Span]:
        executor = model.playbook.executor
        return (executor.span,) if executor is not None and spot(executor) is not None else ()

    return refuses(spans)


def extra_of(key: str) -> Callable[[ast.Executor], Any]:
    return lambda executor: executor.spec.get_extra(key) if executor.spec else None


def refuses_entries(kind: type) -> Break:
    """Break: a pipeline may not have an entry of this kind."""
    return refuses(
        lambda model: (entry.span for one in model.owners for entry in one.entries if isinstance(entry, kind))
    )


def defaults_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read with `default` is taken for one without."""
    monkeypatch.setattr(NameUse, "is_optional", property(lambda _: False, lambda *_: None))


# ---- the verifier


BYTES_BEHIND_DO_NOT_MATTER = around(test_verify_cases, "load", lambda load, data: load(data.rstrip(b"\0")))
"""Break: what follows the last section of a bundle is not read."""


JUMPS_LEAD_ANYWHERE = around(
    verify_expressions._Proof, "_jump", lambda jump, self, target: jump(self, target) if target > self.at else None
)
"""Break: a jump back need not lead to an iterator, which ends."""
