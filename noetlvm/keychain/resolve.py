"""Gets every entry that a playbook declares, before anything runs (S44).

An entry is looked up in the source that `--keychain NAME=…` names; else in that of its declaration; else in each source
that `--keychain` gives, or in the environment if it gives none. Nothing here ever puts a secret into a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from noetlvm.bytecode.program import KeychainEntry
from noetlvm.keychain.command import open_command
from noetlvm.keychain.file import open_file
from noetlvm.keychain.options import KeychainOptionError, Options, ProviderChoice, read_options
from noetlvm.keychain.shapes import ANY_SHAPE, SHAPES, SecretForm, secret_texts, shaped
from noetlvm.keychain.source import Provider, ProviderError, SecretSource, open_environment
from noetlvm.language.keychain import ShapeError, plugins

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
    return [*BUILTIN, *sorted({entry.name for entry in plugins()} - BUILTIN.keys())]


def _plugin(name: str) -> Provider:
    entries = {entry.value: entry for entry in plugins() if entry.name == name}
    if not entries:
        raise ProviderError(f"there is no provider `{name}`; there are {', '.join(provider_names())}")
    if len(entries) > 1:
        raise ProviderError(f"several plugins have the provider `{name}`: {', '.join(sorted(entries))}")
    entry = next(iter(entries.values()))
    try:
        plugin = entry.load()
    except (Exception, SystemExit) as problem:  # foreign code may fail in any way at all while it is imported
        raise ProviderError(f"the plugin `{entry.value}` cannot be loaded: {type(problem).__name__}") from None
    if not callable(plugin):
        raise ProviderError(f"the plugin `{entry.value}` is not a function that returns a source")
    made: Provider = plugin
    return made


_ENVIRONMENT = ProviderChoice("environment", {})


class MissingEntryError(Exception):
    """An entry cannot be resolved. The message names it and the places that were searched."""


class Keychain(NamedTuple):
    """What was found."""

    entries: dict[str, Any]
    """What templates read as `keychain`, and tools get as `auth`."""
    secrets: frozenset[str]
    """Every secret text in it."""


def resolve(declarations: Iterable[KeychainEntry], options: Sequence[str] = ()) -> Keychain:
    """Return all declared entries. Raises MissingEntryError, which names every entry that is missing."""
    declared = tuple(declarations)
    places = _read(options)
    entries: dict[str, Any] = {}
    secrets: set[str] = set()
    missing: list[tuple[str, MissingEntryError]] = []
    for credential in declared:
        try:
            shape = _shape(credential, is_placed=credential.name in places.by_name)
            entry = _entry(credential, shape, places)
        except MissingEntryError as problem:
            missing.append((credential.name, problem))
            continue
        entries[credential.name] = entry
        secrets.update(text for text in secret_texts(entry, shape) if text)
    if missing:
        (_, first), *others = missing
        also = ", ".join(f"`{name}`" for name, _ in others)
        raise MissingEntryError(f"{first}; missing too: {also}" if also else str(first))
    return Keychain(entries, frozenset(secrets))


def look_up(provider: str, secret: str, options: Sequence[str] = (), version: str | None = None) -> Any:
    """Return one secret at run time, for the tool `secrets`. Raises MissingEntryError."""
    places = _read(options)
    given = next((place.settings for place in places.everywhere if place.provider == provider), {})
    settings = {**given, "version": version} if version is not None else given
    return _found(secret, (), (ProviderChoice(provider, settings),))


def _read(options: Sequence[str]) -> Options:
    try:
        return read_options(options)
    except KeychainOptionError as problem:
        raise MissingEntryError(str(problem)) from None


def _entry(credential: KeychainEntry, shape: SecretForm, options: Options) -> Any:
    found = _found(credential.name, shape.fields, _places(credential, options))
    try:
        return shaped(found, shape)
    except ShapeError as problem:
        raise MissingEntryError(
            f"the keychain entry `{credential.name}` is not valid as `{credential.kind}`: {problem}"
        ) from None


def _found(name: str, fields: tuple[str, ...], places: tuple[ProviderChoice, ...]) -> Any:
    """Return the entry from the first place that has it."""
    visited = []
    try:
        for place in places:
            source = open_source(place.provider, place.settings)
            visited.append(source.where(name))
            found = source.find(name, fields)
            if found not in (None, "", {}, []):
                return found
    except ProviderError as problem:
        raise MissingEntryError(
            f"the keychain entry `{name}` cannot be looked up: {problem}; "
            f"or provide it with --keychain {name}=env:VARIABLE"
        ) from None
    raise MissingEntryError(
        f"the keychain entry `{name}` is missing: looked in {', then in '.join(visited)}; "
        f"put it there, or name its source with --keychain {name}=…"
    )


def _places(credential: KeychainEntry, options: Options) -> tuple[ProviderChoice, ...]:
    if credential.name in options.by_name:
        return (options.by_name[credential.name],)
    provider = _provider(credential)
    if provider is None:
        return options.everywhere or (_with_settings(_ENVIRONMENT, credential),)
    # A declaration may leave the file or command to the command line.
    alike = tuple(_with_settings(place, credential) for place in options.everywhere if place.provider == provider)
    return alike or (_with_settings(ProviderChoice(provider, {}), credential),)


def _with_settings(place: ProviderChoice, credential: KeychainEntry) -> ProviderChoice:
    return ProviderChoice(place.provider, {**place.settings, **credential.settings})


def _provider(credential: KeychainEntry) -> str | None:
    """Return the provider that a declaration names: as `provider`, or as its kind."""
    if credential.kind in SHAPES:
        named = credential.settings.get("provider")
        return named if isinstance(named, str) else None
    return credential.kind


def _shape(credential: KeychainEntry, *, is_placed: bool) -> SecretForm:
    """Return the form that a declaration needs. One of any kind may be given with `--keychain NAME=…`."""
    if credential.kind not in SHAPES and credential.kind not in BUILTIN and not is_placed:
        _check_plugin(credential)
    shape = SHAPES.get(credential.kind, ANY_SHAPE)
    fields = credential.settings.get("fields")
    if fields is None or shape.fields:
        return shape
    names = tuple(field for field in fields if isinstance(field, str)) if isinstance(fields, list) else ()
    if not names or fields != list(names):
        raise MissingEntryError(f"the keychain entry `{credential.name}`: `fields` must be a list of names")
    return SecretForm(fields=names, needs=names)


def _check_plugin(credential: KeychainEntry) -> None:
    if credential.kind not in (known := provider_names()):
        kinds = ", ".join([*SHAPES, *known])
        raise MissingEntryError(
            f"the keychain entry `{credential.name}` has the kind `{credential.kind}`, which is unknown; "
            f"known kinds are {kinds}; or provide it with --keychain {credential.name}=env:VARIABLE"
        )
