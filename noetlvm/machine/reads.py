"""What the code of a pipeline can read of its surroundings, so that a command carries that and nothing else.

The answer may be too large, never too small: a namespace that is read in any other way than by a constant key counts as
read whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from noetlvm.bytecode.isa import ControlFlow
from noetlvm.bytecode.program import ExpressionCode, Instruction
from noetlvm.bytecode.verify.operands import count_taken

V = TypeVar("V")

_SURROUNDINGS = "ctx", "workload", "steps"
_AUTH = frozenset({"auth"})
_SOURCE = frozenset({"code", "script"})
_PYTHON, _CONTEXT, _ELSEWHERE = "python", "context", "uri"
"""Code of this kind that has this word sees what templates see; so may code that is read from elsewhere."""


class Reads(NamedTuple):
    """Keys of each namespace; None: all of them."""

    ctx: frozenset[str] | None
    workload: frozenset[str] | None
    steps: frozenset[str] | None
    keychain: frozenset[str] | None


def reads_of(code: tuple[Instruction, ...]) -> Reads:
    """Return what the expressions of a pipeline can read."""
    found = _Found(runs_python=any(one.opcode.name == "CALL" and one.operands[0] == _PYTHON for one in code))
    for instruction in code:
        for value in instruction.operands:
            if type(value) is ExpressionCode:
                found.add(value.code)
    return found.reads()


def part(mapping: dict[str, V], keys: frozenset[str] | None) -> dict[str, V]:
    """Return the entries of a mapping that these keys name; itself if these are all, or if it is stored elsewhere."""
    if keys is None or type(mapping) is not dict or mapping.keys() <= keys:
        return mapping
    return {key: mapping[key] for key in sorted(keys) if key in mapping}


class _Found:
    def __init__(self, *, runs_python: bool) -> None:
        self._runs_python = runs_python
        self._whole: set[str] = set()
        self._keys: dict[str, set[str]] = {}
        self._bare: set[str] = set()
        self._texts: set[str] = set()
        """Constant texts, and keys of mappings: an `auth` that names a keychain entry is among them."""

    def reads(self) -> Reads:
        # Code of a `python` task may read the whole surroundings as `context`.
        shows_context = self._runs_python and any(_CONTEXT in text or text == _ELSEWHERE for text in self._texts)
        whole = self._whole | {*_SURROUNDINGS} if shows_context else self._whole

        def keys(namespace: str, more: set[str]) -> frozenset[str] | None:
            return None if namespace in whole else frozenset(self._keys.get(namespace, more) | more)

        ctx, workload, steps = (keys(namespace, self._bare) for namespace in _SURROUNDINGS)
        return Reads(ctx, workload, steps, keys("keychain", self._texts))

    def add(self, code: tuple[Instruction, ...]) -> None:
        makes_mapping = False
        for at, instruction in enumerate(code):
            name = instruction.opcode.name
            makes_mapping = makes_mapping or name == "RECORD"
            if name == "BARE":
                self._bare.add(str(instruction.operands[0]))
            elif name == "NAME":
                self._namespace(str(instruction.operands[0]), code[at + 1 : at + 3])
            elif name in ("CONST", "RECORD"):
                self._texts.update(_texts(instruction.operands[0]))
        if makes_mapping and _computes(_AUTH, code):
            self._whole.add("keychain")
        if makes_mapping and self._runs_python and _computes(_SOURCE, code):
            self._whole.update(_SURROUNDINGS)

    def _namespace(self, namespace: str, after: tuple[Instruction, ...]) -> None:
        names = [instruction.opcode.name for instruction in after]
        is_by_key = names[:1] == ["ATTR"] or names == ["CONST", "ITEM"]
        key = after[0].operands[0] if is_by_key else None
        if isinstance(key, str):
            self._keys.setdefault(namespace, set()).add(key)
        else:
            self._whole.add(namespace)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _computes(keys: frozenset[str], code: tuple[Instruction, ...]) -> bool:
    """Return whether the code makes a mapping in which a key is not constant, as far as it can be followed."""
    is_constant: list[bool] = []
    for instruction in code:
        opcode = instruction.opcode
        taken = count_taken(instruction)
        if opcode.name == "RECORD":
            words = instruction.operands[0]
            assert isinstance(words, list)
            values = is_constant[-taken:] if taken else []
            given = [word for word in words if word in keys]
            if given and not (len(values) == taken and all(values[words.index(word)] for word in given)):
                return True
        # Past a branch the stack is not followed: too few values are on it, and they count as computed.
        del is_constant[max(len(is_constant) - taken, 0) if opcode.flow is ControlFlow.NEXT else 0 :]
        is_constant += [opcode.name == "CONST"] * opcode.pushes
    return False
