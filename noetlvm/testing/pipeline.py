"""One pipeline of a simulated execution: asks the script instead of tools, and the clock instead of waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noetlvm.engine.children import child_asked
from noetlvm.language.tool_kinds import gives_secret
from noetlvm.machine.control import Work
from noetlvm.machine.effects import Call, Ended, Wait
from noetlvm.machine.frame import frame_for
from noetlvm.testing.result import CallMade, shown
from noetlvm.testing.script import Answer, ScriptError
from noetlvm.tools.call import Outcome, error, ok
from noetlvm.tools.inputs import InputError

if TYPE_CHECKING:
    from noetlvm.testing.simulation import Simulated

AT_ONCE = "noop"
"""The tool that needs no script: it does nothing and takes no time."""

PLAYBOOK = "playbook"


class Pipeline:
    """A worker with one thread."""

    def __init__(self, execution: Simulated, work: Work) -> None:
        self._execution = execution
        self._clock = execution.around.clock
        self._command = work.command
        self._step = work.step
        self._answer = work.answer
        self._frame = frame_for(execution.control, work, execution.credentials.entries)

    def go(self) -> None:
        """Run up to what takes time."""
        while self._execution.is_current(self._command):
            effect = self._frame.advance()
            if not _PERFORMED[type(effect)](self, effect):
                return

    def _end(self, _ended: Ended) -> bool:
        self._report()
        return False

    def _wait(self, wait: Wait) -> bool:
        self._report()
        since = self._clock.now if wait.since is None else wait.since
        self._clock.at(since + wait.seconds, self.go)
        return False

    def _call(self, call: Call) -> bool:
        """Answer a call; tell whether the pipeline goes on at once."""
        if self._answer is not None:
            outcome, self._answer = self._answer, None
            return self._complete(outcome, self._clock.now)
        answer = self._execution.around.script.answer(self._step, self._command.iteration, call)
        if answer is not None:
            self._begin(call, answer)
            return False
        if call.kind == PLAYBOOK:
            return self._ask_for_child(call)
        if call.kind == AT_ONCE:
            return self._complete(ok(), self._clock.now)
        raise ScriptError(f"the script does not say what `{call.label}` of the step `{self._step}` answers")

    def _begin(self, call: Call, answer: Answer) -> None:
        began, execution, command = self._clock.now, self._execution, self._command
        inputs = shown(execution.control.offload.redacted(call.inputs))
        made = CallMade(began, self._step, command.iteration, call.label, call.attempt, call.kind, inputs, call.key)
        execution.made_call(made)
        if gives_secret(call.kind):
            execution.credentials.learn(answer.outcome.get("result"), execution.control.offload)
        self._frame.events.append(self._frame.started(ts=began))
        self._report()
        if answer.fate:
            execution.expire(command)
        self._clock.at(began + answer.takes, lambda: self._finish(call, answer, began))

    def _finish(self, call: Call, answer: Answer, began: float) -> None:
        self._execution.running -= 1
        if answer.fate == "lost":
            return
        self._complete(answer.outcome, began, repeatable=gives_secret(call.kind))
        if answer.fate == "late":
            self._frame.advance()
            self._report()
            return
        self.go()

    def _complete(self, outcome: Outcome, began: float, *, repeatable: bool = False) -> bool:
        now = self._clock.now
        meta = {"duration_ms": round((now - began) * 1000), "ts": now}
        self._frame.complete({**outcome, "meta": meta}, repeatable=repeatable)
        return True

    def _ask_for_child(self, call: Call) -> bool:
        """Ask for a child execution, and leave: a parent that waits holds nothing (S43)."""
        try:
            asked = child_asked(call, self._execution.control.offload)
        except InputError as problem:
            return self._complete(error("input", str(problem)), self._clock.now)
        self._frame.events.append(self._frame.started(ts=self._clock.now, child=asked))
        self._report()
        return False

    def _report(self) -> None:
        events = self._frame.take_events()
        if events:
            self._execution.report(self._command, events)


_PERFORMED: dict[type, Callable[[Pipeline, Any], bool]] = {
    Ended: Pipeline._end,
    Wait: Pipeline._wait,
    Call: Pipeline._call,
}
"""How each effect is performed; False: the pipeline does not go on now."""
