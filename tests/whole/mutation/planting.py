"""Gives this process a changed module: functions that are already imported get the code of its functions.

So everything that imported them runs the change, and what was computed by them before is forgotten. Functions in
tables get their code too; other tables and constants of the module stay as they are.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_CACHED = type(lru_cache(lambda: None))


def source_of(module: ModuleType) -> str:
    return Path(module.__file__ or "").read_text(encoding="utf-8")


def plant_source(module: ModuleType, source: str) -> int:
    """Give the functions of a module the code that they have in a source; return how many of them it changes."""
    path = module.__file__ or ""
    changed = ModuleType(module.__name__)
    changed.__dict__["__file__"] = path
    exec(compile(source, path, "exec"), changed.__dict__)
    _clear_caches(module.__name__.rpartition(".")[0])
    return _take_code(vars(module), vars(changed))


def _clear_caches(package: str) -> None:
    for name, module in list(sys.modules.items()):
        if package and name.startswith(f"{package}."):
            for value in list(vars(module).values()):
                if isinstance(value, _CACHED):
                    value.cache_clear()


def _take_code(into: Any, source: dict[str, Any]) -> int:
    number = 0
    for name, made in list(source.items()):
        known = into.get(name)
        if isinstance(made, type) and isinstance(known, type):
            if known.__module__ == made.__module__:
                number += _take_code(vars(known), dict(vars(made)))
            continue
        if isinstance(made, dict) and isinstance(known, dict) and name != "__builtins__":
            number += _take_code(known, made)
            continue
        for old, new in _functions(known, made):
            if old.__code__.co_freevars == new.__code__.co_freevars:
                number += not _is_same(old, new)
                old.__code__ = new.__code__
                old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return number


def _functions(known: Any, made: Any) -> list[tuple[FunctionType, FunctionType]]:
    if isinstance(known, property) and isinstance(made, property):
        known, made = known.fget, made.fget
    if isinstance(known, (classmethod, staticmethod)) and isinstance(made, (classmethod, staticmethod)):
        known, made = known.__func__, made.__func__
    known, made = getattr(known, "__wrapped__", known), getattr(made, "__wrapped__", made)
    is_pair = isinstance(known, FunctionType) and isinstance(made, FunctionType)
    return [(known, made)] if is_pair and known.__module__ == made.__module__ else []


def _is_same(old: FunctionType, new: FunctionType) -> bool:
    is_same_code = _content(old.__code__) == _content(new.__code__)
    return is_same_code and (old.__defaults__, old.__kwdefaults__) == (new.__defaults__, new.__kwdefaults__)


def _content(code: CodeType) -> tuple[Any, ...]:
    """Return what a code does, without its lines."""
    constants = tuple(_content(one) if isinstance(one, CodeType) else (type(one), one) for one in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, constants
