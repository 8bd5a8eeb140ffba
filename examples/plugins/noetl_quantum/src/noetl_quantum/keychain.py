"""`kind: quantum_lab` of a keychain entry: a token from a file that belongs to the laboratory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noetlvm.keychain.source import ProviderError


class Lab:
    """Tokens in a folder, a file for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, name: str, fields: tuple[str, ...]) -> Any:
        """Return the token of that name, or None if there is none."""
        path = self._folder / f"{name}.token"
        return path.read_text(encoding="utf-8").strip() if path.is_file() else None

    def where(self, name: str) -> str:
        """Say where it is looked for."""
        return f"the laboratory's folder {self._folder} (`{name}.token`)"


def open_lab(settings: Mapping[str, Any]) -> Lab:
    """Make the source from the settings of the entry, or of `--keychain quantum_lab:FOLDER`."""
    folder = settings.get("folder") or settings.get("argument")
    if not isinstance(folder, str):
        raise ProviderError("`folder` must name the folder with the tokens")
    return Lab(Path(folder))
