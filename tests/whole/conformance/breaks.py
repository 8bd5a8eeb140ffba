"""Deliberate breaks of lint and the compiler: each makes the code disobey one sentence until a test is over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
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
from noetlvm.bytecode.program import ArcCode
from noetlvm.bytecode.verify import expressions as verify_expressions
from noetlvm.expr import operations
from noetlvm.record import changed
from tests.whole.conformance import test_verify_cases

Break = Callable[[pytest.MonkeyPatch], None]


def replaced(target: Any, name: str, value: Any) -> Break:
    """Break: something else stands under this name."""
    return lambda monkeypatch: monkeypatch.setattr(target, name, value)


def silent(*codes: str) -> Break:
    """Break: these rules find nothing."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        for code in codes:
            monkeypatch.setattr(rules_by_code()[code], "check", lambda *_: iter(()))

    return breaks


def finds(code: str, **other: Any) -> Break:
    """Break: the findings of a rule have another text, or no fix."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        rule = rules_by_code()[code]
        check = rule.check
        monkeypatch.setattr(rule, "check", lambda *given: (changed(found, **other) for found in check(*given)))

    return breaks


def refuses(spans: Callable[[Model], Iterable[Span]]) -> Break:
    """Break: lint takes something for an error that is allowed."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        rule = rules_by_code()["P022"]
        check = rule.check

        def check_more(self: Rule, model: Model) -> Iterator[Finding]:
            yield from check(self, model)
            for span in spans(model):
                yield self.finding(span, "refused", "")

        monkeypatch.setattr(rule, "check", check_more)

    return breaks


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


def no_problem_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The front end accepts everything."""
    monkeypatch.setattr(sys.modules["noetlc.parse"], "_described", lambda *_: {"kind": "", "line": 0, "column": 0})


def other_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task without a label gets one that does not depend on its position."""
    made = ast.labelled

    def labelled(entries: Any, prefix: str = "") -> Iterator[tuple[Any, str]]:
        for entry, label in made(entries, prefix):
            is_named = isinstance(entry, ast.Task) and entry.label is not None
            yield entry, label if is_named else f"{prefix}unnamed"

    monkeypatch.setattr(ast, "labelled", labelled)


def labels_of_unnamed_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number in a generated label counts tasks without a label only."""

    def labelled(entries: Any, prefix: str = "") -> Iterator[tuple[Any, str]]:
        unnamed = 0
        for entry in entries:
            unnamed += entry.label is None
            yield entry, entry.label.text if entry.label else f"{prefix}task_{unnamed}"

    monkeypatch.setattr(ast, "labelled", labelled)


def bare_names_in(*order: str) -> Break:
    """Break: a name without a namespace is looked for in another order."""
    return replaced(operations, "BARE_NAME_ORDER", order)


def sugar_without(word: str, ending: str) -> Break:
    """Break: a block expands without the jump that has this label."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        expand = canon_flow._EXPANSIONS[word]

        def less(block: Any, label: str) -> Iterator[Any]:
            for part in expand(block, label):
                if not (isinstance(part, ast.Task) and part.label and part.label.text.endswith(ending)):
                    yield part

        monkeypatch.setitem(canon_flow._EXPANSIONS, word, less)

    return breaks


def sugar_as(word: str, other: str) -> Break:
    """Break: a block expands as one of another kind does."""
    return lambda monkeypatch: monkeypatch.setitem(canon_flow._EXPANSIONS, word, canon_flow._EXPANSIONS[other])


def sugar_untested(word: str, ending: str) -> Break:
    """Break: what has this label does not test, and does not jump."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        expand = canon_flow._EXPANSIONS[word]

        def go_on(block: Any, label: str) -> Iterator[Any]:
            for part in expand(block, label):
                is_it = isinstance(part, ast.Task) and part.label and part.label.text.endswith(ending)
                yield canon_flow.mark(part.span, part.label.text) if is_it else part

        monkeypatch.setitem(canon_flow._EXPANSIONS, word, go_on)

    return breaks


def specs_merge(merge: Callable[[Any, Any], Any]) -> Break:
    """Break: an inner spec is laid over an outer one in another way."""
    return replaced(expansion, "_merge", merge)


def joined_lists(outer: Any, inner: Any) -> Any:
    if isinstance(outer, nodes.Sequence) and isinstance(inner, nodes.Sequence):
        return nodes.Sequence(inner.span, (*outer.items, *inner.items))
    return inner


def last_rule_admits(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `mode: inclusive`, the last admission rule decides."""
    admit = program_code._admit

    def by_mode(found: Any, address: str, sources: Any) -> Any:
        if found is not None and found.mode is not None and found.mode.text == "inclusive":
            found = changed(found, rules=tuple(reversed(found.rules)))
        return admit(found, address, sources)

    monkeypatch.setattr(program_code, "_admit", by_mode)


# ---- templates


def templates(lower: Callable[..., None]) -> Break:
    """Break: a template is compiled by `lower`, which gets the function that it replaces first."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        made = expressions._template
        monkeypatch.setattr(expressions, "_template", partial(lower, made))
        for name in ("_piece", "_guard"):  # they cache what templates become
            monkeypatch.setattr(expressions, name, getattr(expressions, name).__wrapped__)

    return breaks


def text_around_is_dropped(made: Callable[..., None], code: Any, template: t.Template, *more: Any) -> None:
    """Text around one `{{ … }}` does not make a string."""
    outputs = [part for part in template.parts if isinstance(part, t.Output)]
    if len(outputs) == 1 and all(isinstance(part, t.Data | t.Output) for part in template.parts):
        inner = template.text[outputs[0].span.start : outputs[0].span.end]
        template = parse_template(inner)
    made(code, template, *more)


def one_template_is_text(made: Callable[..., None], code: Any, template: t.Template, *more: Any) -> None:
    """A string that is one `{{ … }}` gives a text, as any other template does."""
    made(code, parse_template(f"{template.text}{{{{ '' }}}}") if template.is_single else template, *more)


def statement_is_nothing(kind: type[t.Part]) -> Break:
    """Break: a statement of this kind gives no text."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        templates(lambda made, *given: made(*given))(monkeypatch)
        monkeypatch.setitem(statements._LOWER, kind, lambda *_: None)

    return breaks


def plain_texts_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text without marks does not stay as it is."""
    plain = nodes.plain

    def upper(node: nodes.Node) -> Any:
        found = plain(node)
        return found.upper() if isinstance(found, str) else found

    monkeypatch.setattr(nodes, "plain", upper)


# ---- nets


def nets(target: Any, name: str, value: Any) -> Break:
    """Break: the analysis of nets uses something else; its caches of routers are empty."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        for cached in ("_guards", "_choices", "_labels"):
            monkeypatch.setattr(net_module, cached, {})
        monkeypatch.setattr(target, name, value)

    return breaks


_EVENTS = StepSummary.events.fget


def failures_count(self: StepSummary) -> tuple[str, ...]:
    """`best_effort` does not keep a loop from failing."""
    assert _EVENTS is not None
    found: tuple[str, ...] = _EVENTS(changed(self, best_effort=False))
    return found


def all_events_at_once(self: Any, step: StepSummary, _event: str) -> Any:
    """A run ends with all of its boundary events."""
    return tuple(choice for event in step.events for choice in choices(self._formulas(step, event), step.inclusive))


_ROUTER, _FORMULAS = net_module._Builder._router, net_module._Builder._formulas


def something_fires(self: Any, step: StepSummary, event: str) -> Any:
    """Where no arc holds, the first one fires."""
    found = _ROUTER(self, step, event)
    if not step.arcs:
        return found
    return tuple(tuple(fired or (0,) for fired in choice) for choice in found) or (((0,),),)


def unguarded_arcs_need_success(self: Any, step: StepSummary, event: str) -> Any:
    formulas = _FORMULAS(self, step, event)
    failed = event == "step.failed"
    return [False if failed and not arc.text else formula for arc, formula in zip(step.arcs, formulas, strict=True)]


# ---- YAML


def unreported(*kinds: ProblemKind) -> Break:
    """Break: the reader accepts what is a problem of one of these kinds."""

    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        reader = yaml_reader._Reader
        report = reader._problem

        def less(self: Any, kind: ProblemKind, *more: Any) -> None:
            if kind not in kinds:
                report(self, kind, *more)

        monkeypatch.setattr(reader, "_problem", less)

    return breaks


def words_are_booleans(monkeypatch: pytest.MonkeyPatch) -> None:
    """YAML 1.1: `yes`, `no`, `on` and `off` are booleans."""
    plain = yaml_reader.plain_value
    words = {"yes": True, "no": False, "on": True, "off": False}
    monkeypatch.setattr(yaml_reader, "plain_value", lambda text: words[text] if text in words else plain(text))


def aliases_are_null(monkeypatch: pytest.MonkeyPatch) -> None:
    def alias(self: Any, event: Any) -> None:
        self._place(nodes.Scalar(self._span(event), None, "", ""), 1, None)

    monkeypatch.setattr(yaml_reader._Reader, "_alias", alias)


def more_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aliases may repeat so many nodes that the expansion of the case takes more than the limit."""
    repeat = yaml_reader._Reader._repeat
    monkeypatch.setattr(yaml_reader._Reader, "_repeat", lambda self, weight, span: repeat(self, weight // 1_000, span))


# ---- the compiler


def without_constructs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The debug map does not say which construct a label comes from."""
    add = program_code.SourceMap.add
    monkeypatch.setattr(
        program_code.SourceMap, "add", lambda self, address, _, *offsets: add(self, address, "", *offsets)
    )


def parallel_loops_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `exec`, the iterations of a parallel loop stay on one worker."""
    loop = program_code._loop
    monkeypatch.setattr(program_code, "_loop", lambda *given: loop(*given[:-1], True))


def empty_steps_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty step leads to the first one again."""
    lower = program_code.lower_step

    def lead_back(step: ast.Step, name: str, *more: Any, **options: Any) -> Any:
        made = lower(step, name, *more, **options)
        return made if made.pipeline or made.arcs else changed(made, arcs=(ArcCode(name, None, None, False),))

    monkeypatch.setattr(program_code, "lower_step", lead_back)


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


def bytes_behind_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows the last section of a bundle is not read."""
    load = test_verify_cases.load
    monkeypatch.setattr(test_verify_cases, "load", lambda data: load(data.rstrip(b"\0")))


def jumps_lead_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A jump back need not lead to an iterator, which ends."""
    walk = verify_expressions._Proof
    jump = walk._jump
    monkeypatch.setattr(walk, "_jump", lambda self, target: jump(self, target) if target > self.at else None)
