"""The forms that secrets have, by the `kind` that declares them: their parts, and which of these are not secret.

A shape does not depend on the source of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from noetlvm.keychain.source import json_object
from noetlvm.language.keychain import ShapeError


class SecretForm(NamedTuple):
    fields: tuple[str, ...] = ()
    """None: one text, or whatever the source has."""
    needs: tuple[str, ...] = ()
    public: frozenset[str] = frozenset()
    """Parts that are not secret: masking `localhost` in every result would protect nothing."""
    other_names: Mapping[str, str] = {}
    single: str = ""
    """The part that a single text stands for."""
    is_url: bool = False
    """A single text is a URL that holds the parts."""


_POSTGRES_NAMES = {
    "hostname": "host",
    "db_host": "host",
    "db_port": "port",
    "dbname": "database",
    "db_name": "database",
    "db": "database",
    "username": "user",
    "db_user": "user",
    "db_password": "password",
}

SHAPES: dict[str, SecretForm] = {
    "secret_manager": SecretForm(),
    "bearer_token": SecretForm(fields=("token",), needs=("token",), single="token"),
    "api_key": SecretForm(fields=("header", "value"), needs=("value",), public=frozenset({"header"}), single="value"),
    "basic_auth": SecretForm(
        fields=("username", "password"),
        needs=("username", "password"),
        public=frozenset({"username"}),
        other_names={"user": "username"},
    ),
    "postgres_credential": SecretForm(
        fields=("host", "port", "database", "user", "password", "sslmode"),
        public=frozenset({"host", "port", "database", "user", "sslmode"}),
        other_names=_POSTGRES_NAMES,
        is_url=True,
    ),
    "nats_credential": SecretForm(
        fields=("url", "user", "password", "token"), needs=("url",), public=frozenset({"user"}), single="url"
    ),
}
SHAPES["credential"] = SHAPES["secret_manager"]
SHAPES["bearer"] = SHAPES["bearer_token"]

ANY_SHAPE = SecretForm()


def shaped(found: Any, shape: SecretForm) -> Any:
    """Return what was found in the form that templates and tools read. Raises ShapeError."""
    if not shape.fields:
        return found
    if isinstance(found, list):
        raise ShapeError("it must be text or a mapping, not a list")
    if not isinstance(found, Mapping):
        found = _parts(str(found), shape)
    parts = {shape.other_names.get(name, name): value for name, value in found.items()}
    missing = [name for name in shape.needs if not parts.get(name)]
    if missing:
        raise ShapeError(f"it has no {' and no '.join(f'`{name}`' for name in missing)}")
    for name in shape.fields:
        if isinstance(parts.get(name), Mapping | list):
            raise ShapeError(f"its `{name}` must be text")
    if shape.fields == (shape.single,):
        return parts[shape.single]  # whatever stands beside it: a kind has one form, so that templates can rely on it
    if shape.is_url and "port" in parts:
        parts["port"] = _port(parts["port"])
    return parts


def _parts(text: str, shape: SecretForm) -> dict[str, Any]:
    """Return the parts that one text holds. Raises ShapeError."""
    held = json_object(text)
    if held is not None:
        return held
    if shape.is_url:
        return postgres_url(text)
    if shape.single:
        return {shape.single: text}
    raise ShapeError(f"it must have the parts {', '.join(shape.fields)}, not a single text")


def secret_texts(entry: Any, shape: SecretForm = ANY_SHAPE) -> Iterator[str]:
    """Yield the secret texts of an entry, nested ones included."""
    if isinstance(entry, Mapping):
        for name, value in entry.items():
            if name not in shape.public:
                yield from secret_texts(value)
    elif isinstance(entry, list | tuple):
        for value in entry:
            yield from secret_texts(value)
    elif isinstance(entry, bytes):
        yield entry.decode("utf-8", "replace")
    elif isinstance(entry, str | int | float) and not isinstance(entry, bool):
        yield str(entry)
        yield from _password_within(str(entry))


def _password_within(text: str) -> Iterator[str]:
    """Yield the password of a URL: tools extract it and use it alone."""
    if "://" not in text or "@" not in text:
        return
    try:
        password = urlsplit(text).password
    except ValueError:
        return
    if password:
        yield unquote(password)


def postgres_url(text: str) -> dict[str, Any]:
    """Return the parts of `postgresql://user:password@host:port/database?sslmode=…`. Raises ShapeError."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ShapeError("its URL cannot be read; in a user or password, write `/` as %2F, `@` as %40") from None
    if url.scheme not in ("postgres", "postgresql"):
        raise ShapeError("as a single text it must be a URL: postgresql://user:password@host:port/database")
    parts = {
        "host": unquote(url.hostname or ""),
        "port": port,
        "database": unquote(url.path.lstrip("/")),
        "user": unquote(url.username or ""),
        "password": unquote(url.password or ""),
    }
    return {name: value for name, value in parts.items() if value} | dict(parse_qsl(url.query))


def _port(written: Any) -> int:
    try:
        return int(written)
    except (TypeError, ValueError):
        raise ShapeError("its `port` is not a number") from None
