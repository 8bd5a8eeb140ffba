"""What a place to look for secrets is. Sources look; what is found gets its form elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias


class SecretSource(Protocol):
    """A place that has secrets by name."""

    def find(self, name: str, fields: tuple[str, ...]) -> Any:
        """Return a text, or a mapping of what belongs together, or None. Raises ProviderError.

        `fields` are the parts the secret may have, for places that know nothing but single texts.
        """

    def where(self, name: str) -> str:
        """Say where that name is looked for. It never says what is there."""


Provider: TypeAlias = Callable[[Mapping[str, Any]], SecretSource]
"""Makes a source from settings, those of a declaration or of `--keychain`. Raises ProviderError."""


class ProviderError(Exception):
    """A source cannot be reached. The message says why, and quotes nothing of its content."""


def json_object(text: str) -> dict[str, Any] | None:
    """Return a text's JSON object, its numbers as they are written; None if it is none."""
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text, parse_int=str, parse_float=str)
    except (json.JSONDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def text_setting(settings: Mapping[str, Any], name: str) -> str | None:
    """Return a setting that must be text. Raises ProviderError."""
    value = settings.get(name)
    if value is None or (isinstance(value, str) and value):
        return value
    raise ProviderError(f"`{name}` must be a text that is not empty")
