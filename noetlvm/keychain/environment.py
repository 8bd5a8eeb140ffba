"""`environment`: secrets in environment variables, or in anything else that has texts by such names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from noetlvm.keychain.source import text_setting


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
