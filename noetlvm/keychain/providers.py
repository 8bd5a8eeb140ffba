"""Providers by name: the built-in ones from a table, the others from plugins.

A plugin is an entry point of the group `noetlvm.keychain` whose name is the provider's, and whose object makes a
`Source` from settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetlvm.keychain.command import open_command
from noetlvm.keychain.environment import open_environment
from noetlvm.keychain.file import open_file
from noetlvm.keychain.source import Provider, ProviderError, SecretSource

ENTRY_POINT_GROUP = "noetlvm.keychain"

BUILTIN: dict[str, Provider] = {"environment": open_environment, "file": open_file, "command": open_command}


def open_source(provider: str, settings: Mapping[str, Any]) -> SecretSource:
    """Return a provider's source. Raises ProviderError, also if there is no such provider."""
    if provider in BUILTIN:
        return BUILTIN[provider](settings)
    plugin = _plugin(provider)
    try:
        return plugin(settings)
    except ProviderError:
        raise
    except Exception as problem:  # foreign code may fail in any way; its message may quote a secret
        raise ProviderError(f"the plugin for `{provider}` failed: {type(problem).__name__}") from None


def provider_names() -> list[str]:
    """Return the names of all providers, without loading any plugin."""
    from importlib.metadata import entry_points

    return [*BUILTIN, *sorted({entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)} - BUILTIN.keys())]


def _plugin(name: str) -> Provider:
    from importlib.metadata import entry_points

    entries = {entry.value: entry for entry in entry_points(group=ENTRY_POINT_GROUP, name=name)}
    if not entries:
        raise ProviderError(f"there is no provider `{name}`; there are {', '.join(provider_names())}")
    if len(entries) > 1:
        raise ProviderError(f"several plugins offer the provider `{name}`: {', '.join(sorted(entries))}")
    entry = next(iter(entries.values()))
    try:
        plugin = entry.load()
    except (Exception, SystemExit) as problem:  # foreign code may fail in any way at all while it is imported
        raise ProviderError(f"the plugin `{entry.value}` cannot be loaded: {type(problem).__name__}") from None
    if not callable(plugin):
        raise ProviderError(f"the plugin `{entry.value}` makes no source: it cannot be called")
    made: Provider = plugin
    return made
