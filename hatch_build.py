"""Build hook: puts ready-made parse tables into the wheel, so that nobody's first run pays for building them."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ParseTables(BuildHookInterface[Any]):
    """Builds the tables from `grammar/*.lark` with lark and ships them beside the grammars."""

    PLUGIN_NAME = "parse-tables"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a checkout keeps its tables in the user's cache
        sys.path.insert(0, self.root)
        tables = importlib.import_module("noetlc.syntax.lalr")
        folder = Path(tempfile.mkdtemp())
        for path in tables.write_shipped_tables(folder):
            build_data["force_include"][str(path)] = f"noetlc/_grammar/{path.name}"
