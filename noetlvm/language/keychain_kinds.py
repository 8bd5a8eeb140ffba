"""What the `kind` of a keychain entry can be: the form of a secret, or the provider that has it.

Names only, for the linter and the schema; `noetlvm.keychain` has the forms and the providers themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.language.plugins import entry_points_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "noetlvm.keychain"

FORMS = {
    "secret_manager": "a text, or a mapping with the parts that the place has",
    "bearer_token": "a token, for `auth` of an `http` task",
    "api_key": "a value and the header that carries it",
    "basic_auth": "a user name and a password",
    "postgres_credential": "the parts of a PostgreSQL connection",
    "nats_credential": "the URL of a NATS server, with user and password or a token",
    "credential": "another name of `secret_manager`",
    "bearer": "another name of `bearer_token`",
}
"""The form of each, in the order of the documentation."""

PROVIDERS = {
    "environment": "variables of the process's environment",
    "file": "a YAML, JSON or dotenv file",
    "command": "what a program prints",
}
"""Where each looks."""

PLUGIN_KINDS = {
    "oauth2": "tokens of an OAuth 2 server",
    "google_id_token": "Google identity tokens",
    "static": "fixed values (or `kind: file`)",
}
"""Kinds in use that nothing here provides, and for what: a plugin of that name can."""


def is_form(kind: str) -> bool:
    """Return whether a kind only defines the shape of the secret, so that a provider may be named beside it."""
    return kind in FORMS


def is_provided(kind: str) -> bool:
    """Return whether a kind is known here, or installed as a plugin."""
    return is_form(kind) or is_provider(kind)


def is_provider(name: str) -> bool:
    """Return whether a provider is built in, or installed as a plugin."""
    return name in PROVIDERS or any(entry.name == name for entry in plugins())


def plugins() -> tuple[EntryPoint, ...]:
    """Return what installed packages provide."""
    return entry_points_of(ENTRY_POINT_GROUP)
