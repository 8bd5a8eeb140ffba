"""Whether an expression fits its position: the names that are visible there, and the type that it must return.

The code itself is proven once for each expression, however often it is used.
"""

from __future__ import annotations

from enum import Enum

from noetlvm.bytecode.program import ExpressionCode
from noetlvm.bytecode.verify.expressions import Effects, Keys, Proven, prove
from noetlvm.bytecode.verify.operands import CheckError
from noetlvm.language.names import NAME_CHARS_MAX, is_key
from noetlvm.language.scopes import LOOP_ONLY, VISIBLE, TemplatePosition
from noetlvm.record import Record


class Gives(Enum):
    """What an expression must give, as far as it can be seen in its code."""

    TRUTH = "truth"
    MAPPING = "mapping"
    PATCH = "patch"
    """A mapping that is not empty and whose keys are plain names."""
    ANYTHING = "anything"


class Place(Record):
    """Where an expression may stand."""

    position: TemplatePosition
    gives: Gives


ADMIT = Place(TemplatePosition.ADMIT, Gives.TRUTH)
ARC_WHEN = Place(TemplatePosition.ARC_WHEN, Gives.TRUTH)
ARC_ARGS = Place(TemplatePosition.ARC_ARGS, Gives.MAPPING)
LOOP_IN = Place(TemplatePosition.LOOP_IN, Gives.ANYTHING)
LOOP_WIDTH = Place(TemplatePosition.LOOP_SPEC, Gives.ANYTHING)
LOOP_RATE = Place(TemplatePosition.LOOP_SPEC, Gives.MAPPING)
BEFORE_CALL = Place(TemplatePosition.TASK_INPUT, Gives.TRUTH)
INPUTS = Place(TemplatePosition.TASK_INPUT, Gives.MAPPING)
RULE = Place(TemplatePosition.TASK_POLICY, Gives.TRUTH)
PATCH = Place(TemplatePosition.TASK_PATCH, Gives.PATCH)
DELAY = Place(TemplatePosition.TASK_DELAY, Gives.ANYTHING)
ROUNDS = Place(TemplatePosition.SUGAR_MAX, Gives.ANYTHING)

_SERVER_SIDE = frozenset(
    {
        TemplatePosition.ADMIT,
        TemplatePosition.ARC_WHEN,
        TemplatePosition.ARC_ARGS,
        TemplatePosition.LOOP_IN,
        TemplatePosition.LOOP_SPEC,
    }
)
SECRETS = "keychain"


class Uses:
    """Checks uses of expressions, remembering what is proven."""

    def __init__(self) -> None:
        # By identity, which is safe while the program is held: expressions are pooled, and comparing them is slow.
        self._proven: dict[int, Proven] = {}
        self._effects: Effects = {}
        self._patches: set[int] = set()
        """Identities of keys that may be written: constants are pooled, and a long key may be used in many patches."""

    def check(self, expression: ExpressionCode, place: Place, *, in_loop: bool) -> Proven:
        """Return what is known of the expression, or raise CheckError if it cannot stand there."""
        proven = self._proven.get(id(expression))
        if proven is None:
            proven = self._proven[id(expression)] = prove(expression, self._effects)
        if proven.names:
            _check_names(proven.names, place.position, in_loop)
        if place.gives is Gives.TRUTH and proven.not_truth is not None:
            detail = "the instruction before RETURN must be TRUTH, and nothing jump past it"
            raise CheckError("V039", proven.not_truth, detail)
        if place.gives in (Gives.MAPPING, Gives.PATCH) and proven.not_mapping is not None:
            detail = "the instruction before RETURN must be RECORD or the CONST of a mapping, and nothing jump past it"
            raise CheckError("V040", proven.not_mapping, detail)
        if place.gives is Gives.PATCH:
            for at, keys in proven.mappings:
                self._check_patch(at, keys)
        return proven

    def _check_patch(self, at: int, keys: Keys) -> None:
        if id(keys) in self._patches:
            return
        if not keys:
            raise CheckError("V063", at, "its mapping is empty")
        unplain = next((key for key in keys if not is_key(key)), None)
        if unplain is not None:
            raise CheckError(
                "V065",
                at,
                f"`{unplain}`: letters, digits and `_`, no digit first, {NAME_CHARS_MAX:,} characters at most",
            )
        self._patches.add(id(keys))


def _check_names(names: dict[str, int], position: TemplatePosition, in_loop: bool) -> None:
    visible = VISIBLE[position]
    for name, at in names.items():
        if name not in visible:
            is_secret = name == SECRETS and position in _SERVER_SIDE
            raise CheckError("V031" if is_secret else "V030", at, f"`{name}` in an expression of {_article(position)}")
        if name in LOOP_ONLY and not in_loop:
            raise CheckError("V032", at, f"`{name}` in an expression of {_article(position)}")


def _article(position: TemplatePosition) -> str:
    return f"the {position}" if not position.startswith("`") else position
