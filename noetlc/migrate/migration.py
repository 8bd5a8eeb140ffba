"""Migrates one text: reads it, rewrites it pass by pass, and writes it back. Pure: same text in, same text out."""

from __future__ import annotations

from noetlc.migrate.cases import CaseRewriter, step_catch
from noetlc.migrate.comments import with_all_comments
from noetlc.migrate.constructs import CONSTRUCTS, Effect, Rewrite, RewriteLog, described
from noetlc.migrate.credentials import declare_credentials
from noetlc.migrate.dialect import Dialect, Recognised, recognise
from noetlc.migrate.document import (
    DocumentReader,
    DocumentWriter,
    Draft,
    Leaf,
    Map,
    MapEntry,
    leaves,
    plain_data,
    scalar,
)
from noetlc.migrate.facts import PlaybookFacts, StepFacts, TaskFacts, carried_vars, step_facts, steps_of, tasks_of
from noetlc.migrate.names import NameScope, ReadAt
from noetlc.migrate.policies import PolicyRewriter
from noetlc.migrate.routing import RouteRewriter, admit_policy
from noetlc.migrate.shapes import STEP_INPUTS, shape_document, shape_step, shape_task
from noetlc.migrate.state import arc_state, root_vars, sinks_to_tasks, step_state
from noetlc.migrate.templates import as_expression, is_one_expression, rename_in_leaf, renamed_text
from noetlc.syntax.input import DEFAULT_LIMITS, ReadLimits
from noetlc.syntax.span import Span
from noetlc.syntax.yaml_reader import Document, read_document
from noetlvm.record import Record

_RULE_KEYS = ("eval", "set", "retry")
_STATE_KEYS = ("vars", "set", "set_ctx")
_WITH_CODE = frozenset({"python", "workbook", "playbook"})
"""Kinds whose arguments are read elsewhere than in templates."""
_OLDER = frozenset({Dialect.EVAL, Dialect.CASE})


class Migration(Record):
    """The result for one text."""

    before: str
    after: str
    recognised: Recognised
    changes: tuple[Rewrite, ...] = ()
    problem: str = ""
    """Why the text could not be migrated at all."""
    other_kind: str = ""
    """What the document is, if not a playbook: it is left alone."""

    @property
    def changed(self) -> bool:
        return self.after != self.before

    @property
    def open_changes(self) -> tuple[Rewrite, ...]:
        return tuple(change for change in self.changes if change.construct.effect is Effect.HAND)


def migrate_text(text: str, limits: ReadLimits = DEFAULT_LIMITS) -> Migration:
    return migrate_document(text, read_document(text, limits))


def migrate_document(text: str, document: Document) -> Migration:
    """Bring a playbook, already read, to canonical v10."""
    recognised = recognise(document.root)
    if document.root is None or document.problems:
        what = document.problems[0].message if document.problems else "the document is empty"
        return Migration(text, text, recognised, problem=f"it is not read as YAML without problems: {what}")
    root = DocumentReader(text).read(document.root)
    if not isinstance(root, Map):
        return Migration(text, text, recognised, problem="it is not a playbook")
    if root.text("kind") not in ("", "Playbook"):
        return Migration(text, text, recognised, other_kind=root.text("kind"))
    log = RewriteLog()
    _Passes(text, root, recognised.dialect, log).run()
    after = _written(text, root)
    changes = log.changes
    if after != text:
        written = read_document(after)
        if written.problems:
            problem = "the result would not be readable; the file is left as it is"
            return Migration(text, text, recognised, (*changes, Rewrite("R909", Span(0, 0), problem)))
        after = with_all_comments(text, document, after, written, log.left)
    if after == text:  # nothing was rewritten: only what needs a hand is worth a word
        changes = tuple(change for change in changes if CONSTRUCTS[change.code].effect is Effect.HAND)
    return Migration(text, after, recognised, changes)


def _written(text: str, root: Map) -> str:
    written = DocumentWriter(text).write(root)
    if written.endswith("\n") and text.rpartition("\n")[2] == written[:-1].rpartition("\n")[2]:
        written = written[:-1]  # the last line had no line break, and is still the last
    return written.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text and written != text else written


class _Passes:
    """The passes over one document, in their order."""

    def __init__(self, text: str, root: Map, dialect: Dialect, log: RewriteLog) -> None:
        self._text = text
        self._root = root
        self._dialect = dialect
        self._log = log

    def run(self) -> None:
        shape_document(self._root, self._log)
        for body in steps_of(self._root):
            sinks_to_tasks(body, self._log)
            shape_step(body, self._log, older=self._dialect in _OLDER)
        facts = PlaybookFacts(self._root)
        for step, key in carried_vars(facts):
            self._log.add("R915", step.body.span, f"`vars.{key}` of step `{step.name}`, which may run again")
        for step in facts.steps:
            self._names(facts, step)
        for step in facts.steps:
            self._step(facts, step)
        for step in facts.steps:
            arc_state(self._root, step, self._log)
        self._workbook(facts)
        root_vars(facts, self._log)
        declare_credentials(self._root, self._log)

    def _step(self, facts: PlaybookFacts, step: StepFacts) -> None:
        policies = PolicyRewriter(facts, step, self._log)
        step_catch(step, self._log)
        RouteRewriter(step, self._log).rewrite()
        CaseRewriter(facts, step, self._log, self._rename).rewrite()
        for task in step_facts(step.body).tasks:  # those that were made of cases too
            policies.rewrite(task)
        if self._dialect is not Dialect.V10:
            policies.parallel_writes()
        admit_policy(step.body, self._log)
        step_state(facts, step, self._log)

    def _workbook(self, facts: PlaybookFacts) -> None:
        """Rewrite the tasks of the workbook as those of a step."""
        workbook = self._root.map("workbook")
        tasks = workbook.map("tasks") if workbook else None
        for entry in tasks.pairs if tasks else ():
            body = Map([MapEntry("step", scalar(entry.key)), MapEntry("tool", entry.value)], flow=True)
            for _, task in tasks_of(entry.value):
                shape_task(task, self._log)
            step = step_facts(body)
            self._names(facts, step)
            for each in step.tasks:
                PolicyRewriter(facts, step, self._log).rewrite(each)
            entry.value = body.get("tool") or entry.value

    # ---- names, by position

    def _given(self, facts: PlaybookFacts, step: StepFacts) -> dict[str, str]:
        """Return what a step gives tasks that take no arguments: expressions, to be written where they are read."""
        found: dict[str, str] = {}
        for word in STEP_INPUTS:
            pair = step.body.pair(word)
            if pair is None:
                continue
            values = plain_data(pair.value)
            in_code = any(task.kind in _WITH_CODE for task in step.tasks)
            if in_code or not isinstance(values, dict) or not all(map(is_one_expression, values.values())):
                self._log.add("R914", pair.span, f"`{word}` of a step, and no single task that takes arguments")
                continue
            scope = NameScope(facts, ReadAt.INPUT, step)
            for key, value in values.items():
                found[key] = as_expression(renamed_text(value, scope) if isinstance(value, str) else value)
            self._log.add("R211", pair.span, f"the values of `{word}` of a step stand where they are read")
            step.body.pairs.remove(pair)
        return found

    def _names(self, facts: PlaybookFacts, step: StepFacts) -> None:
        given = self._given(facts, step)
        for pair in step.body.pairs:
            where = {"next": ReadAt.ARC, "when": ReadAt.OTHER, "loop": ReadAt.OTHER}.get(pair.key)
            if where:
                self._rename(pair.value, NameScope(facts, where, step))
            elif pair.key in _STATE_KEYS:
                scope = NameScope(facts, ReadAt.AFTER, step)
                if step.has_loop:
                    scope.result_is(step.name)
                self._rename(pair.value, scope)
        previous: TaskFacts | None = None
        for task in step.tasks:
            for pair in task.body.pairs:
                self._task_names(facts, step, task, previous, pair, given)
            previous = task

    def _task_names(
        self,
        facts: PlaybookFacts,
        step: StepFacts,
        task: TaskFacts,
        previous: TaskFacts | None,
        pair: MapEntry,
        given: dict[str, str],
    ) -> None:
        rule = NameScope(facts, ReadAt.RULE, step, task, given=given)
        if pair.key in _RULE_KEYS:
            self._rename(pair.value, rule)
        elif pair.key == "spec" and isinstance(pair.value, Map) and pair.value.pair("policy"):
            policy = pair.value.get("policy")
            assert policy is not None
            self._rename(policy, rule)
        else:
            self._rename(pair.value, NameScope(facts, ReadAt.INPUT, step, task, previous, given))

    def _rename(self, node: Draft, scope: NameScope) -> None:
        for leaf in leaves(node):
            self._rename_leaf(leaf, scope)

    def _rename_leaf(self, leaf: Leaf, scope: NameScope) -> None:
        if not leaf.is_template:
            return
        seen, reported = len(scope.codes), len(scope.reports)
        rename_in_leaf(self._text, leaf, scope)
        for code in dict.fromkeys(scope.codes[seen:]):
            self._log.add(code, leaf.span, described(code))
        for code, message in scope.reports[reported:]:
            self._log.add(code, leaf.span, message)
