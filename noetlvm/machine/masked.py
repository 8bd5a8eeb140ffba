"""What a recorded mask means to a pipeline (S45, S64).

While the process that ran a task goes on, it has the task's result. The record has a mask in place of each secret. A
mask must not be taken for the value: whatever contains one is undefined, so that using it is an error (S10).
"""

from __future__ import annotations

from typing import Any

from noetlvm.data.encoding import MASK
from noetlvm.expr.values import Undefined


def unmasked(value: Any, name: str, writer: str = "") -> Any:
    """Return recorded data in which every masked text is undefined; itself if there is none. `name` is its path."""
    if type(value) is str:
        return _undefined(name, writer) if MASK in value else value
    if type(value) is dict:
        items = {key: unmasked(item, f"{name}.{key}", writer) for key, item in value.items()}
        return items if any(items[key] is not item for key, item in value.items()) else value
    if type(value) is list or type(value) is tuple:
        found = [unmasked(item, f"{name}[{at}]", writer) for at, item in enumerate(value)]
        return found if any(new is not old for new, old in zip(found, value, strict=True)) else value
    return value


def _undefined(name: str, writer: str) -> Undefined:
    task = f"the task `{writer}`" if writer else "the task that set it"
    return Undefined(f"{name} (a secret, which is not recorded: run {task} again)")
