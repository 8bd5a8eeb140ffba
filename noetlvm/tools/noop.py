"""`kind: noop`: does nothing. Its policy is the point: a place to decide, to jump and to write state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.language.tool_kinds import ToolKind
from noetlvm.tools.call import Outcome, ToolCall, ok

if TYPE_CHECKING:
    from noetlvm.tools.call import Resources

KIND = ToolKind(
    name="noop",
    summary="Does nothing and succeeds. Use it for policy rules that decide, jump and write state.",
    example="""\
kind: noop
spec:
  policy:
    rules:
      - else:
          then: { do: continue, set_ctx: { started: true } }
""",
    result="null",
    can_fail=False,
    open=True,
)


async def run(_call: ToolCall, _resources: Resources) -> Outcome:
    return ok()
