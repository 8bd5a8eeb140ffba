"""From YAML nodes to the playbook's syntax tree, along `grammar/playbook.lark`.

Which token a node becomes depends on what the parser can shift: the key `spec` is a word in a step and plain data among
a task's inputs. A node that the grammar does not accept is recorded as a problem and skipped, so one run finds every
mistake and there is always a tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from noetlc.syntax import ast
from noetlc.syntax.lalr import Parser, Production, load_grammar
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, Sequence
from noetlc.syntax.span import Problem, ProblemKind, Span
from noetlvm.nearest import nearest
from noetlvm.record import Record, changed

_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = "LBRACE", "RBRACE", "LSQB", "RSQB"
_PUNCTUATION = frozenset({_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST})
SUGAR = frozenset({"choose", "while", "until"})


class GrammarObject(NamedTuple):
    """An object rule of `grammar/playbook.lark`, the class of its node, and how messages name it."""

    rule: str
    node: type[ast.Struct]
    title: str
    required: tuple[str, ...] = ()
    """Its required keys, but for those of which a rule of the linter explains more: a `then` without `do`."""


_OBJECTS = (
    GrammarObject("playbook", ast.Playbook, "a playbook", ("apiVersion", "kind", "metadata", "workflow")),
    GrammarObject("metadata", ast.Metadata, "`metadata`", ("name", "path")),
    GrammarObject("credential", ast.Credential, "a keychain entry", ("name", "kind")),
    GrammarObject("executor", ast.Executor, "`executor`"),
    GrammarObject("executor_spec", ast.ExecutorSpec, "`executor.spec`"),
    GrammarObject("executor_policy", ast.ExecutorPolicy, "`executor.spec.policy`"),
    GrammarObject("executor_defaults", ast.ExecutorDefaults, "`executor.spec.policy.defaults`"),
    GrammarObject("executor_results", ast.ExecutorResults, "`executor.spec.policy.results`"),
    GrammarObject("limits", ast.LimitSettings, "`executor.spec.policy.limits`"),
    GrammarObject("workbook", ast.Workbook, "`workbook`"),
    GrammarObject("step", ast.Step, "a step", ("step",)),
    GrammarObject("step_spec", ast.StepSpec, "a step's `spec`"),
    GrammarObject("step_policy", ast.StepPolicy, "a step's `spec.policy`"),
    GrammarObject("admit", ast.Admit, "`admit`", ("rules",)),
    GrammarObject("admit_rule", ast.AdmitRule, "an admission rule"),
    GrammarObject("admit_else", ast.AdmitElse, "the `else` of an admission rule", ("then",)),
    GrammarObject("verdict", ast.AdmitThen, "the `then` of an admission rule", ("allow",)),
    GrammarObject("lifecycle", ast.Lifecycle, "`lifecycle`"),
    GrammarObject("failure", ast.Failure, "`failure`"),
    GrammarObject("emit", ast.Emit, "`emit`"),
    GrammarObject("loop", ast.Loop, "a loop", ("in", "iterator")),
    GrammarObject("loop_spec", ast.LoopSpec, "a loop's `spec`"),
    GrammarObject("rate", ast.Rate, "a loop's `rate`", ("max",)),
    GrammarObject("loop_policy", ast.LoopPolicy, "a loop's `spec.policy`"),
    GrammarObject("reducers", ast.Reducers, "`reducers`"),
    GrammarObject("task", ast.Task, "a task", ("kind",)),
    GrammarObject("labelled_task", ast.Task, "a task", ("kind",)),
    GrammarObject("branch", ast.Branch, "a `choose` branch"),
    GrammarObject("branch_else", ast.BranchElse, "the `else` of a `choose`", ("then",)),
    GrammarObject("rounds", ast.Repeat, "a `while` or `until`", ("when", "do")),
    GrammarObject("task_spec", ast.TaskSpec, "a task's `spec`"),
    GrammarObject("task_policy", ast.TaskPolicy, "a task's `spec.policy`"),
    GrammarObject("rule", ast.PolicyRule, "a policy rule"),
    GrammarObject("rule_else", ast.RuleElse, "the `else` of a policy rule", ("then",)),
    GrammarObject("then", ast.Then, "the `then` of a policy rule"),
    GrammarObject("router", ast.Router, "`next`", ("arcs",)),
    GrammarObject("router_spec", ast.RouterSpec, "`next.spec`"),
    GrammarObject("router_policy", ast.RouterPolicy, "`next.spec.policy`"),
    GrammarObject("arc", ast.Arc, "an arc", ("step",)),
)

OBJECTS = {one.rule: one.node for one in _OBJECTS}
REQUIRED = {one.rule: one.required for one in _OBJECTS if one.required}
TITLES = {one.rule: one.title for one in _OBJECTS} | {
    "workbook_tasks": "`workbook.tasks`",
    "choose": "a `choose`",
    "while": "a `while`",
    "until": "an `until`",
    "workflow": "a step",
    "keychain": "a keychain entry",
    "admit_rules": "an admission rule",
    "tasks": "an entry of a pipeline",
    "branches": "a `choose` branch",
    "rules": "a policy rule",
    "arcs": "an arc",
}
"""The names of objects and list items in messages."""

_TERMINAL_TITLES = {
    "STRING": "a string",
    "TEMPLATE": "a template `{{ … }}`",
    "INTEGER": "a whole number",
    "DECIMAL": "a number",
    "BOOLEAN": "true or false",
    "MAPPING": "a mapping",
    "SEQUENCE": "a list",
    "ANYTHING": "a value",
    "LABELLED": "a mapping",
    _OPEN: "a mapping",
    _OPEN_LIST: "a list",
}


_MEANT = {"step": ("name", "id", "target"), "then": ("do",), "do": ("then",)}
"""Common names for another key, besides typing errors."""

_LISTS = {
    "workflow": "write a list of steps: `- step: start`, with its other keys below",
    "keychain": "write a list: `- {name: api_token, kind: bearer_token}`",
}
"""What to write for a mapping where a list of objects stands."""


class ParsedPlaybook(Record):
    """The tree, and the problems with nodes that are not part of it."""

    playbook: ast.Playbook | None
    problems: tuple[Problem, ...]


def parse_playbook(root: Node) -> ParsedPlaybook:
    walk = _Walk()
    if not walk.value(root):
        walk.wrong_type(root, "playbook", "", walk.parser.expected())
        return ParsedPlaybook(None, tuple(walk.problems))
    return ParsedPlaybook(walk.parser.finish(), tuple(walk.problems))


MAY_BE_EMPTY = frozenset({"args", "desc", "executor", "keychain", "spec", "workbook", "workload"})
"""Keys that mean the same without a value as if they were absent."""


def describe(node: Node) -> str:
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return f"the boolean `{node.text}`"
    if isinstance(node.value, int | float):
        return f"the number `{node.text}`"
    return f"the {'template' if node.is_template else 'string'} `{_shortened(node.text)}`"


def one_of(words: Iterable[str]) -> str:
    """Join alternatives for a message: a, b or c."""
    listed = list(words)
    return " or ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)


def _shortened(text: str, width: int = 40) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


class _Field(NamedTuple):
    key: Scalar
    value: Any
    is_open: bool


class _Walk:
    """Feeds one document to the parser and collects problems."""

    def __init__(self) -> None:
        grammar = load_grammar("playbook")
        self.problems: list[Problem] = []
        self.parser = Parser(grammar, _build)
        self._words = {text: name for text, name in grammar.literals.items() if name not in _PUNCTUATION}
        self._texts = {name: text for text, name in self._words.items()}

    def value(self, node: Node) -> bool:
        """Feed a node; False if the grammar does not accept it here."""
        if isinstance(node, Mapping):
            return self._mapping(node)
        if isinstance(node, Sequence):
            return self._sequence(node)
        return self._feed_first((self._word(node), _scalar_terminal(node), "ANYTHING"), node)

    def wrong_type(self, node: Node, object_name: str, key: str, expected: list[str]) -> None:
        words = [self._texts[name] for name in expected if name in self._texts]
        types = [_TERMINAL_TITLES[name] for name in expected if name in _TERMINAL_TITLES]
        wanted = one_of(dict.fromkeys([*(f"`{word}`" for word in words), *types]))
        subject = f"`{key}`" if key else TITLES.get(object_name, object_name)
        meant = nearest(node.text, words) if isinstance(node, Scalar) and words else ""
        self.problems.append(
            Problem(
                ProblemKind.WRONG_TYPE,
                _head(node),
                f"{subject} must be {wanted}, not {describe(node)}",
                f"did you mean `{meant}`?" if meant else _instead(node, key) or f"write {wanted}",
                object_name,
                key,
                meant,
            )
        )

    def _feed_first(self, terminals: Iterable[str], node: Node) -> bool:
        for terminal in terminals:
            if terminal and self.parser.accepts(terminal):
                self.parser.feed(terminal, node)
                return True
        return False

    def _word(self, scalar: Scalar) -> str:
        return self._words.get(scalar.text, "") if isinstance(scalar.value, str) else ""

    def _mapping(self, node: Mapping) -> bool:
        if _is_labelled(node) and self.parser.accepts("LABELLED"):
            (entry,) = node.entries
            self.parser.feed("LABELLED", node)
            self.parser.feed("KEY", entry.key)
            self.value(entry.value)
            self.parser.feed(_CLOSE, node)
            return True
        if not self.parser.accepts(_OPEN):
            return self._feed_first(("MAPPING", "ANYTHING"), node)
        self.parser.feed(_OPEN, node)
        unknown: list[Scalar] = []
        for entry in node.entries:
            self._field(entry, unknown)
        if unknown:
            self._unknown_keys(unknown, {entry.key.text for entry in node.entries})
        self.parser.feed(_CLOSE, node)
        return True

    def _field(self, entry: MappingEntry, unknown: list[Scalar]) -> None:
        word = self._words.get(entry.key.text, "")
        if not self._feed_first((word, "KEY"), entry.key):
            unknown.append(entry.key)
            return
        before_key = self.parser.mark() - 1
        if not self.value(entry.value):
            expected = self.parser.expected()
            self.parser.rewind(before_key)
            is_empty = isinstance(entry.value, Scalar) and entry.value.value is None
            if entry.key.text in MAY_BE_EMPTY and is_empty:
                return
            self.wrong_type(entry.value, self.parser.would_reduce(_CLOSE), entry.key.text, expected)

    def _unknown_keys(self, keys: list[Scalar], given: set[str]) -> None:
        """Record the unknown keys of the object that is about to be closed."""
        known = [self._texts[name] for name in self.parser.expected() if name in self._texts]
        object_name = self.parser.would_reduce(_CLOSE)
        title = TITLES.get(object_name, object_name)
        listed = ", ".join(f"`{word}`" for word in sorted(known))
        takes = f"{title} takes {listed}" if known else "remove it"
        for key in keys:
            free = [word for word in known if word not in given]
            meant = nearest(key.text, free) or next((word for word in free if key.text in _MEANT.get(word, ())), "")
            self.problems.append(
                Problem(
                    ProblemKind.UNKNOWN_KEY,
                    key.span,
                    f"{title} has no key `{_shortened(key.text)}`",
                    f"did you mean `{meant}`?" if meant else takes,
                    object_name,
                    key.text,
                    meant,
                )
            )

    def _sequence(self, node: Sequence) -> bool:
        if not self.parser.accepts(_OPEN_LIST):
            return self._feed_first(("SEQUENCE", "ANYTHING"), node)
        self.parser.feed(_OPEN_LIST, node)
        for item in node.items:
            if not self.value(item):
                self.wrong_type(item, self.parser.would_reduce(_CLOSE_LIST), "", self.parser.expected())
        self.parser.feed(_CLOSE_LIST, node)
        return True


def _is_labelled(node: Mapping) -> bool:
    return (
        len(node.entries) == 1 and isinstance(node.entries[0].value, Mapping) and node.entries[0].key.text not in SUGAR
    )


def _instead(node: Node, key: str) -> str:
    """Return what to write for a common mistake; empty: it is none."""
    if isinstance(node, Mapping):
        return _LISTS.get(key, "")
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.text.isprintable():
        return ""
    text = _shortened(node.text)
    if not key and text.endswith((".yaml", ".yml", ".nbc")):
        return "this is the name of a file: give its content, or in Python `pathlib.Path(…)`"
    instead = {
        "tool": f"write `tool: {{kind: {text}, …}}`, with the inputs beside `kind`",
        "in": f'write `in: "{{{{ {text} }}}}"` if it is an expression, else a list',
    }
    return instead.get(key, "")


def _head(node: Node) -> Span:
    """A place short enough to underline: a scalar whole, a collection by its first character."""
    return node.span if isinstance(node, Scalar) else Span(node.span.start, min(node.span.start + 1, node.span.end))


def _scalar_terminal(scalar: Scalar) -> str:
    value = scalar.value
    if isinstance(value, str):
        return "TEMPLATE" if scalar.is_template else "STRING"
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "INTEGER"
    return "DECIMAL" if isinstance(value, float) else ""


def _build(production: Production, children: list[Any]) -> Any:
    name = production.name
    if name in OBJECTS:
        return _object(OBJECTS[name], children)
    if name.endswith("_field"):
        return _Field(children[0], children[1], production.label == "open_field")
    special = _SPECIAL.get(name)
    return special(children) if special else tuple(children[1:-1])


def _object(cls: type[ast.Struct], children: list[Any]) -> ast.Struct:
    node: Mapping = children[0]
    fields: list[_Field] = children[1:-1]
    values: dict[str, Any] = {}
    extra: list[MappingEntry] = []
    for key, value, is_open in fields:
        if is_open and key.text in SUGAR and isinstance(value, Scalar) and value.value is None:
            continue  # a key without a value counts as absent
        if is_open or cls is ast.Reducers:
            extra.append(MappingEntry(key, value))
        else:
            name = "label" if cls is ast.Task and key.text == "name" else ast.attribute(key.text)
            is_bare_task = key.text == "tool" and isinstance(value, ast.Task)  # a pipeline of one
            values[name] = (value,) if is_bare_task else value
    return cls(span=node.span, keys={field.key.text: field.key.span for field in fields}, extra=tuple(extra), **values)


def _labelled(children: list[Any]) -> ast.Task:
    node, label, task = children[0], children[1], children[2]
    labelled: ast.Task = changed(task, span=node.span, label=label)
    return labelled


def _choose(children: list[Any]) -> ast.Choose:
    node, word, branches = children[0], children[1], children[2]
    return ast.Choose(span=node.span, keys={"choose": word.span}, choose=branches)


def _repeat(children: list[Any]) -> ast.Repeat:
    node, word, rounds = children[0], children[1], children[2]
    block: ast.Repeat = changed(rounds, span=node.span, keys={word.text: word.span, **rounds.keys}, word=word.text)
    return block


def _workbook_tasks(children: list[Any]) -> tuple[ast.WorkbookTask, ...]:
    fields: list[_Field] = children[1:-1]
    return tuple(
        ast.WorkbookTask(name=field.key, entries=(field.value,) if isinstance(field.value, ast.Task) else field.value)
        for field in fields
    )


_SPECIAL = {
    "start": lambda children: children[0],
    "labelled": _labelled,
    "choose": _choose,
    "while": _repeat,
    "until": _repeat,
    "workbook_tasks": _workbook_tasks,
}
