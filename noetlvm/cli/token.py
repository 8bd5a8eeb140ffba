"""`noetlvm token`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.request import Json
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.service.process import open_tokens
from noetlvm.service.tokens import TokenError, create_token

if TYPE_CHECKING:
    from noetlvm.store.interface import TokenStore


def token(
    action: Annotated[str, Argument(metavar="create|list|revoke", help="Operation.")],
    id: Annotated[str | None, Argument(metavar="[ID]", help="Token to revoke.")] = None,
    store: Annotated[str, Option(metavar="STORE", help="sqlite:FILE or postgresql://….")] = "",
    scope: Annotated[
        list[str] | None,
        Option("--scope", metavar="SCOPE", help="admin, run, read or worker; repeatable, or separated by commas."),
    ] = None,
    pool: Annotated[
        list[str] | None,
        Option("--pool", metavar="NAME", help="Pool that workers with the token serve; repeatable. [default: default]"),
    ] = None,
    as_json: Json = False,
) -> int:
    """Create, list or revoke the tokens of a store. A token's text is printed once, when it is created.

    Examples: noetlvm token create --store sqlite:noetl.db --scope admin, noetlvm token create --store sqlite:noetl.db
    --scope worker --pool vault, noetlvm token revoke 3f9c01aa77de --store sqlite:noetl.db
    """
    if action not in _ACTIONS:
        raise CommandError(f"`{action}` is not create, list or revoke")
    if not store:
        raise CommandError("which store? Give --store sqlite:FILE or --store postgresql://…")
    opened = open_tokens(store)
    try:
        return _ACTIONS[action](opened, id, scope or [], pool or [], as_json)
    finally:
        opened.close()


def _create(store: TokenStore, _id: str | None, scopes: list[str], pools: list[str], as_json: bool) -> int:
    try:
        created = create_token(store, [name for text in scopes for name in text.split(",")], store.now(), pools)
    except TokenError as error:
        raise CommandError(str(error)) from None
    print(json.dumps(created._asdict()) if as_json else created.token)
    return SUCCESS


def _list(store: TokenStore, _id: str | None, _scopes: list[str], _pools: list[str], as_json: bool) -> int:
    for row in store.tokens():
        shown = {"id": row.id, "scopes": list(row.scopes), "created": row.created, "revoked": row.revoked}
        status = "revoked" if row.revoked else "valid"
        print(json.dumps(shown) if as_json else f"{row.id}  {status:8}  {','.join(row.scopes)}")
    return SUCCESS


def _revoke(store: TokenStore, id: str | None, _scopes: list[str], _pools: list[str], as_json: bool) -> int:
    if id is None or not store.revoke_token(id, store.now()):
        raise CommandError(f"there is no token `{id or ''}`; `noetlvm token list` lists them")
    print(json.dumps({"id": id, "revoked": True}) if as_json else f"{id}: revoked")
    return SUCCESS


_ACTIONS: dict[str, Callable[[TokenStore, str | None, list[str], list[str], bool], int]] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
}
