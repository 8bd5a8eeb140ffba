"""What a secret leaves behind in the record, and what a pipeline may still make of it after a crash (S45).

In the lease that ran a task its result is whole. The record has a mask wherever a secret stood. Whoever goes on from
the record must not take the mask for the value: what was masked is undefined, so that needing it is an error (S10).
"""

from __future__ import annotations

from typing import Any

from noetlvm.data.encoding import MASK
from noetlvm.expr.values import Undefined


def unmasked(value: Any) -> Any:
    """Return a recorded result with everything undefined in it that a mask stands in."""
    if isinstance(value, str):
        return Undefined("a secret that is not recorded") if MASK in value else value
    if isinstance(value, dict):
        return {key: unmasked(item) for key, item in value.items()}
    return [unmasked(item) for item in value] if isinstance(value, (list, tuple)) else value
