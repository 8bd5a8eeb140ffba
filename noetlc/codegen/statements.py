"""The parts of a template to stack code: text, `{{ … }}`, `if`, `for` and `set`. Their output is appended to a text."""

from __future__ import annotations

from collections.abc import Callable

from noetlc.analysis.names import FOR_LOOP
from noetlc.codegen.operations import Operations
from noetlc.codegen.stack_code import (
    ForBlock,
    JumpLabel,
    LoweringError,
    Parts,
    TemplateScope,
    bodies,
    possibly_assigned,
    surely_assigned,
)
from noetlc.syntax import template_ast as t


class Statements:
    """Lowers the parts of one template by means of its `Operations`."""

    def __init__(self, operations: Operations, require: str | None) -> None:
        self._operations = operations
        self._code = operations.code
        self._require = require

    def text(self, parts: Parts, at: int) -> None:
        """Emit code that pushes the text that parts produce."""
        self._code.emit("TEXT_BEGIN", at=at)
        self._parts(parts)
        self._code.emit("TEXT_END", at=at)

    def _parts(self, parts: Parts) -> None:
        for part in parts:
            lower = _LOWER.get(type(part))
            if lower is None:
                raise LoweringError(part.span, "playbooks do not have this statement", "use `if`, `for` or `set`")
            lower(self, part)

    def _data(self, part: t.Data) -> None:
        self._code.emit("EMIT_CONST", part.text, at=part.span.start)

    def _output(self, part: t.Output) -> None:
        constant = self._operations.folding.constant(part.expression)
        at = part.expression.span.start
        if constant is not None and isinstance(constant.value, str):
            self._code.emit("EMIT_CONST", constant.value, at=at)
            return
        self._operations.lower(part.expression)
        if constant is None and self._require is not None:
            self._code.emit("REQUIRE", self._require, at=at)
        self._code.emit("EMIT", at=at)

    # ---- if

    def _if(self, part: t.If) -> None:
        part = self._without_constants(part)
        if not part.branches:
            self._parts(part.otherwise)
            return
        frame = self._operations.scope
        self._prepare(part, frame)
        before = set(frame.assigned)
        end = self._code.label()
        for branch in part.branches:
            otherwise = self._code.label()
            self._operations.branch(branch.test, otherwise)
            self._branch(branch.body, before)
            if part.otherwise or branch is not part.branches[-1]:
                self._code.emit("JUMP", end, at=branch.span.start)
            self._code.place(otherwise)
        self._branch(part.otherwise, before)
        self._code.place(end)
        frame.assigned = before | set(possibly_assigned((part,)))

    def _branch(self, parts: Parts, before: set[str]) -> None:
        self._operations.scope.assigned = set(before)
        self._parts(parts)

    def _without_constants(self, part: t.If) -> t.If:
        """Return the branches without those that are never taken."""
        open_branches: list[t.IfBranch] = []
        for branch in part.branches:
            truth = self._operations.folding.truth(branch.test)
            if truth:
                return t.If(part.span, tuple(open_branches), branch.body)
            if truth is None:
                open_branches.append(branch)
        return t.If(part.span, tuple(open_branches), part.otherwise)

    def _prepare(self, part: t.If, frame: TemplateScope) -> None:
        """Assign variables that only some branches assign their value from outside."""
        sure = frozenset.intersection(*(surely_assigned(body) for body in bodies(part)))
        for name in possibly_assigned((part,)):
            if name not in frame.assigned and name not in sure:
                self._operations.read(name, part.span.start)
                self._assign_name(name, part.span.start)

    # ---- for

    def _for(self, part: t.For) -> None:
        if part.recursive:
            raise LoweringError(
                part.span, "a recursive `for` has no code", "nest `for` blocks, or flatten the data in a `python` task"
            )
        self._operations.lower(part.iterable)
        if part.test is not None:
            self._keep_if(part, part.test)
        self._code.emit("ITER", at=part.iterable.span.start)
        done, end = self._code.label(), self._code.label()
        self._rounds(part, done, lambda: self._parts(part.body), with_loop=True)
        if not part.otherwise:
            self._code.emit("POP", at=part.span.start)
            return
        self._code.emit("JUMP_IF", end, at=part.span.start)
        self._in_scope(None, lambda: self._parts(part.otherwise))
        self._code.place(end)

    def _rounds(self, part: t.For, done: JumpLabel, body: Callable[[], None], *, with_loop: bool) -> None:
        """Emit the loop over the iterator on the stack; `done` gets the address after it."""
        operations = self._operations
        loop = ForBlock(operations.iterators) if with_loop else None
        operations.iterators += 1
        again = self._code.label()
        self._code.place(again)
        self._code.emit("NEXT", done, at=part.target.span.start)

        def one_round() -> None:
            self._assign(part.target)
            body()

        self._in_scope(loop, one_round)
        self._code.emit("JUMP", again, at=part.span.start)
        self._code.place(done)
        operations.iterators -= 1

    def _keep_if(self, part: t.For, test: t.Expression) -> None:
        """Replace the collection on the stack by a list of the elements for which the test holds.

        The list is made first because `loop` counts only its elements. In the test, `loop` is the enclosing block's.
        """
        code = self._code
        at = test.span.start
        chosen, item = code.slot(), code.slot()
        code.emit("LIST", 0, at=at)
        code.emit("STORE", chosen, at=at)
        code.emit("ITER", at=part.iterable.span.start)
        again, done = code.label(), code.label()
        self._operations.iterators += 1
        code.place(again)
        code.emit("NEXT", done, at=part.target.span.start)
        code.emit("DUP", at=at)
        code.emit("STORE", item, at=at)

        def decide() -> None:
            self._assign(part.target)
            self._operations.branch(test, again)

        self._in_scope(None, decide)
        code.emit("LOCAL", chosen, at=at)
        code.emit("LOCAL", item, at=at)
        code.emit("APPEND", at=at)
        code.emit("STORE", chosen, at=at)
        code.emit("JUMP", again, at=at)
        code.place(done)
        self._operations.iterators -= 1
        code.emit("POP", at=at)
        code.emit("LOCAL", chosen, at=at)

    # ---- set

    def _set(self, part: t.Set) -> None:
        self._operations.lower(part.value)
        self._assign(part.target)

    def _set_block(self, part: t.SetBlock) -> None:
        self._in_scope(None, lambda: self.text(part.body, part.span.start))
        if part.filter is not None:
            self._operations.lower(part.filter)
        self._assign(part.target)

    def _assign(self, target: t.Expression) -> None:
        """Emit code that pops a value into a target."""
        if isinstance(target, t.Name):
            self._refuse_loop(target)
            self._assign_name(target.name, target.span.start)
        elif isinstance(target, t.Tuple):
            self._code.emit("UNPACK", len(target.items), at=target.span.start)
            for item in target.items:
                self._assign(item)
        else:
            raise LoweringError(
                target.span, "data does not change in place, so only a name can be set", "set a variable of your own"
            )

    def _assign_name(self, name: str, at: int) -> None:
        frame = self._operations.scope
        if name not in frame.slots:
            frame.slots[name] = self._code.slot()
        self._code.emit("STORE", frame.slots[name], at=at)
        frame.assigned.add(name)

    def _refuse_loop(self, target: t.Name) -> None:
        if target.name == FOR_LOOP and self._operations.iterators:
            raise LoweringError(target.span, "`loop` belongs to the `for` block around it", "choose another name")

    def _in_scope(self, loop: ForBlock | None, lower: Callable[[], None]) -> None:
        operations = self._operations
        operations.scope = TemplateScope(operations.scope, loop)
        lower()
        outer = operations.scope.outer
        assert outer is not None
        operations.scope = outer


_LOWER: dict[type[t.Part], Callable[..., None]] = {
    t.Data: Statements._data,
    t.Output: Statements._output,
    t.If: Statements._if,
    t.For: Statements._for,
    t.Set: Statements._set,
    t.SetBlock: Statements._set_block,
}
