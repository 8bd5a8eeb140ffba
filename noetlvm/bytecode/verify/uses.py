"""Whether an expression may stand where it stands: which names it reads there, and what it must give.

The code itself is proven once for each expression, however often it is used.
"""

from __future__ import annotations

from enum import Enum

from noetlvm.bytecode.program import ExpressionCode, InvalidBundleError
from noetlvm.bytecode.verify.expressions import Effects, Keys, Proven, prove
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
BEFORE_CALL = Place(TemplatePosition.TASK_INPUT, Gives.TRUTH)
INPUTS = Place(TemplatePosition.TASK_INPUT, Gives.MAPPING)
RULE = Place(TemplatePosition.TASK_POLICY, Gives.TRUTH)
PATCH = Place(TemplatePosition.TASK_PATCH, Gives.PATCH)
DELAY = Place(TemplatePosition.TASK_DELAY, Gives.ANYTHING)

_SERVER_SIDE = frozenset(
    {TemplatePosition.ADMIT, TemplatePosition.ARC_WHEN, TemplatePosition.ARC_ARGS, TemplatePosition.LOOP_IN}
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
        unplain = next((key for key in keys if not key.isidentifier()), None)
        if unplain is not None:
            raise CheckError("V065", at, f"`{unplain}`: letters, digits and `_`, no digit first")
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


INVALID: dict[str, str] = {
    # -- any code
    "V001": "an instruction belongs to the other machine",
    "V002": "an instruction has too few or too many operands",
    "V003": "an operand is not of its kind",
    "V004": "a target is no instruction of the code",
    "V005": "a slot is not one of those declared",
    "V006": "a word is not in the instruction set's table",
    "V007": "there is no code",
    "V008": "there is more code than allowed",
    "V009": "more slots are declared than allowed",
    # -- expressions: the stack
    "V010": "more is taken off the stack than lies on it",
    "V011": "an iterator is taken for a value",
    "V012": "NEXT finds no iterator on top of the stack",
    "V013": "two paths meet with different stacks",
    "V014": "two paths meet with different texts begun",
    "V015": "no text has been begun",
    "V016": "something is left on the stack at the end",
    "V017": "a text is left unfinished at the end",
    "V018": "the code runs off its end",
    "V019": "an instruction is never reached from above",
    "V020": "a jump back goes to something other than a NEXT",
    "V021": "LOOP stands outside so many running for blocks",
    "V022": "APPEND would change a list that others may hold",
    "V023": "the stack grows beyond what is allowed",
    "V024": "for blocks are nested deeper than allowed",
    # -- expressions: what they name and give
    "V030": "a name is not visible in this place",
    "V031": "a server-side expression reads secrets",
    "V032": "`iter` is read outside a loop",
    "V033": "there is no such filter",
    "V034": "there is no such test",
    "V035": "there is no such function",
    "V036": "there is no such method",
    "V037": "the arguments do not fit",
    "V038": "an argument is named twice",
    "V039": "a guard must end with TRUTH",
    "V040": "what must be a mapping is not built as one",
    "V041": "a key stands twice in a mapping",
    # -- pipelines
    "V050": "an instruction for between tasks stands inside a task",
    "V051": "CALL does not follow its task's ENTER",
    "V052": "an instruction needs an outcome, and there is none yet",
    "V053": "an instruction needs a task, and there is none",
    "V054": "two paths meet in different states of a task",
    "V055": "the target is not a place between tasks",
    "V056": "RETRY does not go to its own task's CALL",
    "V057": "a label stands twice",
    "V058": "a label is not a plain label",
    "V059": "the pipeline runs off its end",
    "V060": "an instruction of the pipeline is never reached",
    "V061": "RETRY allows no attempt",
    "V062": "the tool's kind has no name",
    "V063": "PATCH writes nothing",
    "V064": "`iter` is written outside a loop",
    "V065": "a key of a patch is not a plain name",
    # -- the net
    "V070": "there is no playbook",
    "V071": "a playbook has no step",
    "V072": "a playbook has no name or no path",
    "V073": "two playbooks have the same path",
    "V074": "the further playbooks are not sorted by path",
    "V075": "two steps have the same name",
    "V076": "a step's name is not a plain name",
    "V077": "the entry step does not exist",
    "V078": "the final step does not exist",
    "V079": "an arc leads to no step",
    "V080": "`handles_failure` disagrees with whether the guard reads `event`",
    "V081": "a loop lets no iteration run",
    "V082": "a sequential loop is wider than one",
    "V083": "an iterator's name is not a plain name of its own",
    "V084": "two levels of a loop have the same iterator",
    "V085": "there is no such reducer",
    "V086": "the reducers are not sorted by key, each once",
    "V087": "loops are nested deeper than allowed",
    "V088": "two credentials have the same name",
    "V089": "a credential's name is not a plain name",
    "V090": "a credential has no kind",
    # -- the debug map
    "V100": "the debug map lacks an address",
    "V101": "the debug map has an address too many",
    "V102": "the debug map has another address here",
    "V103": "an address has too few or too many marks",
    "V104": "a mark is in a file that is not listed",
    "V105": "a mark has no line or column",
    "V106": "a file is listed twice",
}


class CheckError(Exception):
    """A check failed at `offset`. `Located` adds the section and the address."""

    def __init__(self, code: str, offset: int, detail: str, part: str = "") -> None:
        self.code = code
        self.offset = offset
        self.detail = detail
        self.part = part
        """Which part of what stands at the address, such as `arc.2`."""
        super().__init__(code)

    def at_address(self, section: str, address: str) -> InvalidBundleError:
        """Return the error for the outside."""
        place = "/".join(filter(None, (address, self.part)))
        where = f"`{_shortened(place)}`: " if place else ""
        return InvalidBundleError(
            self.code, section, self.offset, f"{where}{INVALID[self.code]}: {_shortened(self.detail)}"
        )


def _shortened(text: str) -> str:
    """Names come from the bundle, and may be as long as it likes."""
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"


_TEXT_MAX = 300


class Located:
    """A context that adds this section and address to a failed check.

    The address comes in parts, to be joined when it is needed: a playbook's path may be long, and stands before the
    name of each of its steps.
    """

    __slots__ = ("_address", "_section")

    def __init__(self, section: str, *address: str) -> None:
        self._section = section
        self._address = address

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, CheckError):
            raise error.at_address(self._section, "".join(self._address)) from None
