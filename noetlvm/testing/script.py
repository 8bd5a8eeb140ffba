"""The language of scripted answers in tests: `ok {"id": 7}`, `http 503`, `error timeout`.

A script gives answers by task. `fetch` is a task wherever it stands, `load/fetch` the one of the step `load`, and
`fetch[3]` or `load/fetch[3]` the one of an iteration; the most exact key answers. A list answers call by call and must
be long enough. Anything else answers every call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from noetlvm.machine.instructions import CallTool
from noetlvm.tools.call import Outcome, error, ok

Scripts: TypeAlias = Mapping[str, Any]

_HTTP_ERROR = 400
_HTTP_RETRYABLE = frozenset({408, 425, 429})
_HTTP_SERVER_ERROR = 500


class ScriptError(Exception):
    """The script has no answer for a call, or one that cannot be read."""


class Answer(NamedTuple):
    outcome: Outcome
    takes: float = 0
    """Seconds that it lasts."""
    fate: str = ""
    """`lost`: the worker is gone, and another takes over. `late`: so it seems, but it reports the outcome later."""


class Script:
    """Answers calls."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._used = dict.fromkeys(scripts, 0)

    def answer(self, step: str, iteration: str, call: CallTool) -> Answer | None:
        """Return the answer to a call; None if the script has nothing for its task."""
        key = self._key(step, iteration, call.label)
        return None if key is None else read_answer(self._next(key), call)

    def knows(self, step: str, iteration: str, label: str) -> bool:
        """Return whether the script has an answer for a task."""
        return self._key(step, iteration, label) is not None

    def _key(self, step: str, iteration: str, label: str) -> str | None:
        exact = f"{label}[{iteration}]" if iteration else label
        keys = (f"{step}/{exact}", exact, f"{step}/{label}", label)
        return next((key for key in keys if key in self._scripts), None)

    def _next(self, key: str) -> Any:
        answers = self._scripts[key]
        if not isinstance(answers, (list, tuple)):
            return answers
        at = self._used[key]
        if at == len(answers):
            raise ScriptError(f"the script of `{key}` has {len(answers)} answers, and there is one more call")
        self._used[key] = at + 1
        return answers[at]


def read_answer(written: Any, call: CallTool) -> Answer:
    """Return an answer as it is written: in words, as an outcome, as `{answer, takes}` or as `{tries, takes}`."""
    if isinstance(written, str):
        return _in_words(written, call)
    if isinstance(written, Mapping) and "status" in written:
        return Answer(dict(written))
    if isinstance(written, Mapping) and "answer" in written:
        return read_answer(written["answer"], call)._replace(takes=written.get("takes", 0))
    if isinstance(written, Mapping) and "tries" in written:
        return _tried(written["tries"], written.get("takes", 0), call)
    raise ScriptError(f"`{call.label}` is to answer {written!r}; write words, an outcome, `answer` or `tries`")


def _tried(answers: list[Any], takes: float, call: CallTool) -> Answer:
    """Try once, and again after each retryable error as often as `spec.retries` allows."""
    spent = 0.0
    outcome: Outcome = error("script", f"`{call.label}` has no tries")
    for written in answers[: 1 + call.spec.get("retries", 0)]:
        outcome, spent = read_answer(written, call).outcome, spent + takes
        if not (outcome.get("error") or {}).get("retryable"):
            break
    return Answer(outcome, spent)


def _in_words(text: str, call: CallTool) -> Answer:
    word, _, rest = text.partition(" ")
    if word in _FATES:
        return _in_words(rest or "ok", call)._replace(fate=word)
    if word not in _WORDS:
        raise ScriptError(f"`{call.label}` is to answer `{text}`; the first word may be {', '.join(_WORDS)}")
    try:
        return Answer(_WORDS[word](rest, call))
    except ValueError as problem:
        raise ScriptError(f"`{call.label}` is to answer `{text}`, which cannot be read: {problem}") from None


def _http(text: str, _call: CallTool) -> Outcome:
    """Answer as `kind: http` does for a response of that status."""
    code, _, body = text.partition(" ")
    status = int(code)
    result, part = {"status": status, "headers": {}, "data": _data(body)}, {"status": status, "headers": {}}
    if status < _HTTP_ERROR:
        return ok(result, http=part)
    retryable = status in _HTTP_RETRYABLE or status >= _HTTP_SERVER_ERROR
    return error("http", f"the server answered {status}", retryable=retryable, result=result, http=part)


def _error(text: str, *, retryable: bool) -> Outcome:
    kind, _, message = text.partition(" ")
    return error(kind or "scripted", message or "the script says so", retryable=retryable)


def _data(text: str) -> Any:
    return json.loads(text) if text.strip() else None


_FATES = frozenset({"lost", "late"})
_WORDS: dict[str, Callable[[str, CallTool], Outcome]] = {
    "ok": lambda text, _call: ok(_data(text)),
    "http": _http,
    "error": lambda text, _call: _error(text, retryable=False),
    "retryable": lambda text, _call: _error(text, retryable=True),
    "echo": lambda _text, call: ok(dict(call.inputs)),
    "bulk": lambda text, _call: ok("x" * int(text)),
    "unencodable": lambda _text, _call: ok(object()),
}
"""How each word of a script is read: `echo` returns the inputs, `bulk` a text of so many characters."""
