"""Every declared entry is found where it should be looked for, or refused by name and place (S44)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from noetlvm.bytecode.program import KeychainEntry
from noetlvm.keychain.resolve import Keychain, MissingEntryError, look_up, resolve

PG = KeychainEntry("pg_main", "postgres_credential", {})
TOKEN = KeychainEntry("api_token", "secret_manager", {})


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PG_MAIN", "API_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def secrets_file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.yaml"
    path.write_text("api_token: from-file\npg_main: {host: db, password: 0123}\ntenants: {acme: {token: deep}}\n")
    return path


def only(credential: KeychainEntry, *options: str) -> Any:
    return resolve([credential], options).entries[credential.name]


def refusal(credential: KeychainEntry, *options: str) -> str:
    with pytest.raises(MissingEntryError) as refused:
        resolve([credential], options)
    return str(refused.value)


def printing(text: str) -> list[str]:
    return [sys.executable, "-c", f"print({text!r})"]


# ---- where


def test_nothing_declared_is_nothing_found() -> None:
    assert resolve([]) == Keychain({}, frozenset())


def test_the_environment_is_the_place_if_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "from-env")
    assert only(TOKEN) == "from-env"


def test_a_missing_entry_is_named_with_every_place_looked_in(secrets_file: Path) -> None:
    reported = refusal(KeychainEntry("other", "secret_manager", {}), "env", f"file:{secrets_file}")
    assert "`other`" in reported
    assert "`OTHER`" in reported
    assert str(secrets_file) in reported


def test_every_missing_entry_is_named() -> None:
    declared = [KeychainEntry(name, "secret_manager", {}) for name in ("first", "second", "third")]
    with pytest.raises(MissingEntryError, match=r"`first` is missing.*; missing too: `second`, `third`$"):
        resolve(declared)


def test_an_empty_secret_is_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "")
    assert "is missing" in refusal(TOKEN)


def test_sources_are_searched_in_order(monkeypatch: pytest.MonkeyPatch, secrets_file: Path) -> None:
    monkeypatch.setenv("API_TOKEN", "from-env")
    assert only(TOKEN, "env", f"file:{secrets_file}") == "from-env"
    assert only(TOKEN, f"file:{secrets_file}", "env") == "from-file"


def test_an_option_for_one_entry_wins_over_its_declaration(monkeypatch: pytest.MonkeyPatch, secrets_file: Path) -> None:
    monkeypatch.setenv("ELSEWHERE", "there")
    declared = KeychainEntry("api_token", "file", {"path": str(secrets_file)})
    assert only(declared) == "from-file"
    assert only(declared, "api_token=env:ELSEWHERE") == "there"
    assert only(TOKEN, f"api_token=file:{secrets_file}#tenants.acme.token") == "deep"


def test_a_declaration_says_where_it_is(monkeypatch: pytest.MonkeyPatch, secrets_file: Path) -> None:
    monkeypatch.setenv("ELSEWHERE", "there")
    assert only(KeychainEntry("x", "environment", {"variable": "ELSEWHERE"}), f"file:{secrets_file}") == "there"
    assert only(KeychainEntry("x", "secret_manager", {"provider": "environment", "variable": "ELSEWHERE"})) == "there"
    assert only(KeychainEntry("x", "file", {"path": str(secrets_file), "key": "tenants/acme"})) == {"token": "deep"}
    assert only(KeychainEntry("x", "command", {"command": [*printing("said")]})) == "said"


def test_a_declaration_may_leave_the_file_to_the_command_line(secrets_file: Path) -> None:
    assert only(KeychainEntry("api_token", "file", {}), "env", f"file:{secrets_file}") == "from-file"
    assert "`path`" in refusal(KeychainEntry("api_token", "file", {}))


def test_a_kind_that_nothing_provides_is_refused_with_those_there_are() -> None:
    reported = refusal(KeychainEntry("x", "carrier_pigeon", {}))
    assert "`x`" in reported
    assert "`carrier_pigeon`" in reported
    assert "postgres_credential" in reported


@pytest.mark.parametrize("option", ["", "=", "env:X", "file:a.yaml#key", "cmd:", "cmd:pass show", "cmd:'open"])
def test_an_option_that_cannot_be_read_is_refused(option: str) -> None:
    assert "--keychain" in refusal(TOKEN, option)


def test_two_options_for_one_entry_are_refused() -> None:
    assert "two sources" in refusal(TOKEN, "a=env:A", "a=env:B")


def test_a_secret_written_as_an_option_is_not_repeated() -> None:
    assert "s3cr3t" not in refusal(TOKEN, "!s3cr3t")


# ---- shapes


def test_the_parts_of_a_credential_have_a_variable_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"HOST": "db", "PORT": "5433", "USER": "me", "PASSWORD": "pw-of-me"}.items():
        monkeypatch.setenv(f"PG_MAIN_{name}", text)
    found = resolve([PG])
    assert found.entries == {"pg_main": {"host": "db", "port": 5433, "user": "me", "password": "pw-of-me"}}
    assert found.secrets == {"pw-of-me"}


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:p%40ss@db:5433/shop?sslmode=require",
        json.dumps(
            {
                "db_host": "db",
                "db_port": 5433,
                "dbname": "shop",
                "username": "me",
                "password": "p@ss",
                "sslmode": "require",
            }
        ),
    ],
)
def test_one_variable_may_hold_all_parts(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PG_MAIN", text)
    expected = {"host": "db", "port": 5433, "database": "shop", "user": "me", "password": "p@ss", "sslmode": "require"}
    assert only(PG) == expected


@pytest.mark.parametrize("text", ["s3cr3t", "mysql://s3cr3t@h/d", "postgres://u:s3cr3t@h:port/d", '{"port": "s3cr3t"}'])
def test_what_is_no_credential_is_refused_without_quoting_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PG_MAIN", text)
    reported = refusal(PG)
    assert "`pg_main`" in reported
    assert "s3cr3t" not in reported


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_USERNAME", "me")
    assert "`password`" in refusal(KeychainEntry("shop", "basic_auth", {}))


def test_a_bearer_token_is_a_text_however_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    credential = KeychainEntry("shop", "bearer_token", {})
    monkeypatch.setenv("SHOP_TOKEN", "in-part")
    assert only(credential) == "in-part"
    monkeypatch.setenv("SHOP", "as-a-whole")
    assert only(credential) == "as-a-whole"
    monkeypatch.setenv("SHOP", '{"token": "in-json", "expires": 3600}')
    assert only(credential) == "in-json"


@pytest.mark.parametrize("written", ["shop: flat", "shop: {token: flat}", "shop: {token: flat, refresh_token: other}"])
def test_a_bearer_token_in_a_file_is_a_text_whatever_stands_beside_it(tmp_path: Path, written: str) -> None:
    (tmp_path / "secrets.yaml").write_text(written)
    found = resolve([KeychainEntry("shop", "bearer_token", {})], [f"file:{tmp_path / 'secrets.yaml'}"])
    assert found == Keychain({"shop": "flat"}, frozenset({"flat"}))


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("bearer_token", "shop: {token: {token: s3cr3t}}"),
        ("bearer_token", "shop: [s3cr3t]"),
        ("basic_auth", "shop: {username: me, password: [s3cr3t]}"),
        ("api_key", "shop: {value: {a: s3cr3t}}"),
        ("postgres_credential", "shop: {host: db, password: {a: s3cr3t}}"),
    ],
)
def test_a_part_that_is_no_text_is_refused_by_name(tmp_path: Path, kind: str, written: str) -> None:
    (tmp_path / "secrets.yaml").write_text(written)
    reported = refusal(KeychainEntry("shop", kind, {}), f"file:{tmp_path / 'secrets.yaml'}")
    assert f"`shop` is not valid as `{kind}`: " in reported
    assert "must be text" in reported
    assert "s3cr3t" not in reported


def test_a_playbook_may_name_the_parts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    credential = KeychainEntry("shop", "secret_manager", {"fields": ["key", "salt"]})
    monkeypatch.setenv("SHOP_KEY", "a")
    assert "`salt`" in refusal(credential)
    monkeypatch.setenv("SHOP_SALT", "b")
    assert only(credential) == {"key": "a", "salt": "b"}
    assert "`fields`" in refusal(KeychainEntry("shop", "secret_manager", {"fields": "key"}))


def test_all_texts_of_an_entry_without_a_shape_are_secrets(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"x": {"a": ["one", {"b": 1234}], "url": "https://u:p%2Fw@h"}}')
    found = resolve([KeychainEntry("x", "file", {"path": str(path)})])
    assert found.secrets == {"one", "1234", "https://u:p%2Fw@h", "p/w"}


# ---- at run time


def test_a_secret_can_be_looked_up_while_running(monkeypatch: pytest.MonkeyPatch, secrets_file: Path) -> None:
    monkeypatch.setenv("API_TOKEN", "from-env")
    assert look_up("environment", "api_token") == "from-env"
    assert look_up("file", "tenants/acme/token", [f"file:{secrets_file}"]) == "deep"
    with pytest.raises(MissingEntryError, match="`nothing`"):
        look_up("environment", "nothing")


# ---- plugins


class Vault:
    """A source as a plugin makes one."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        if settings.get("argument") == "broken":
            raise RuntimeError("the key s3cr3t does not work")
        self.argument = settings.get("argument", "")

    def find(self, name: str, fields: tuple[str, ...]) -> Any:
        return None if name == "absent" else f"{name} of {self.argument}"

    def where(self, name: str) -> str:
        return f"the vault {self.argument}"


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("vault", "plugin:Vault", "noetlvm.keychain")
    monkeypatch.setattr(EntryPoint, "load", lambda entry: Vault)
    monkeypatch.setattr("noetlvm.keychain.resolve.plugins", lambda: (entry,))


@pytest.mark.usefixtures("vault")
def test_a_plugin_provides_secrets_by_option_and_by_kind() -> None:
    assert only(TOKEN, "vault:https://v") == "api_token of https://v"
    assert only(KeychainEntry("x", "vault", {"argument": "here"})) == "x of here"
    assert "the vault here" in refusal(KeychainEntry("absent", "vault", {"argument": "here"}))


@pytest.mark.usefixtures("vault")
def test_a_plugin_that_fails_is_named_and_its_message_is_not_repeated() -> None:
    reported = refusal(TOKEN, "vault:broken")
    assert "`vault`" in reported
    assert "s3cr3t" not in reported


@pytest.mark.parametrize("entry", [KeychainEntry("t", "oauth2", {}), KeychainEntry("t", "bearer", {"provider": "gcp"})])
def test_an_entry_that_nothing_provides_can_be_given_by_name(
    entry: KeychainEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "given")
    assert "--keychain t=env:VARIABLE" in refusal(entry)
    assert only(entry, "t=env:MINE") == "given"


def test_a_nats_credential_is_a_url_or_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_text("a: nats://one\nb: {url: nats://two, token: abcdef}\n")
    found = [only(KeychainEntry(name, "nats_credential", {}), f"file:{path}") for name in ("a", "b")]
    assert found == [{"url": "nats://one"}, {"url": "nats://two", "token": "abcdef"}]
