"""The port of secret sources. A source only looks up; `shapes` converts what it finds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias


class SecretSource(Protocol):
    """A source of secrets by name."""

    def find(self, name: str, fields: tuple[str, ...]) -> Any:
        """Return a text, or a mapping of what belongs together, or None. Raises ProviderError.

        `fields` are the parts the secret may have, for sources that only have single texts.
        """

    def where(self, name: str) -> str:
        """Describe where that name is looked up, without its value."""


Provider: TypeAlias = Callable[[Mapping[str, Any]], SecretSource]
"""Makes a source from settings, those of a declaration or of `--keychain`. Raises ProviderError."""


class ProviderError(Exception):
    """A source cannot be reached. The message gives the reason, and quotes nothing of its content."""


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
    raise ProviderError(f"`{name}` must be text that is not empty")


class Environment:
    """`pg_main` is the variable `PG_MAIN`; its field `password` is `PG_MAIN_PASSWORD`."""

    def __init__(
        self, variables: Mapping[str, str], variable: str | None = None, place: str = "the environment"
    ) -> None:
        self._variables = variables
        self._variable = variable
        self._place = place

    def find(self, name: str, fields: tuple[str, ...]) -> Any:
        variable = self._named(name)
        if self._variables.get(variable):
            return self._variables[variable]
        parts = {field: self._variables.get(f"{variable}_{field.upper()}") for field in fields}
        return {field: text for field, text in parts.items() if text} or None

    def where(self, name: str) -> str:
        return f"{self._place} (`{self._named(name)}`)"

    def _named(self, name: str) -> str:
        if self._variable is not None:
            return self._variable
        return "".join(character if character.isalnum() else "_" for character in name).upper()


def open_environment(settings: Mapping[str, Any]) -> Environment:
    """Return the process's environment; `variable` names the variable if the entry's name does not."""
    return Environment(os.environ, text_setting(settings, "variable"))
