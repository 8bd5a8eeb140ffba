"""Routes that create, list and revoke tokens. All of them need the scope `admin`.

The first token of a store cannot come from here: `noetlvm token create` writes it to the store.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from noetlvm.service.access import requires
from noetlvm.service.models import NewToken, TokenRequest, TokenView
from noetlvm.service.playbooks_api import driver_of
from noetlvm.service.problems import ProblemError, documented
from noetlvm.service.tokens import TokenError, create_token

tokens_router = APIRouter(tags=["tokens"], dependencies=[requires("admin")])


@tokens_router.post("/tokens", status_code=201, responses=documented(422))
def add_token(request: Request, wanted: TokenRequest) -> NewToken:
    """Create a token. Its text is in this answer and nowhere else."""
    store = driver_of(request).store
    try:
        created = create_token(store, wanted.scopes, store.now(), wanted.pools)
    except TokenError as error:
        raise ProblemError(422, str(error)) from None
    return NewToken(token=created.token, id=created.id, scopes=list(created.scopes))


@tokens_router.get("/tokens", responses=documented())
def list_tokens(request: Request) -> list[TokenView]:
    """List tokens, without their secrets."""
    return [
        TokenView(id=token.id, scopes=list(token.scopes), created=token.created, revoked=token.revoked)
        for token in driver_of(request).store.tokens()
    ]


@tokens_router.delete("/tokens/{token}", status_code=204, response_class=Response, responses=documented(404, 422))
async def revoke_token(request: Request, token: str) -> Response:
    """Revoke a token. This server ends at once what uses it; others accept it for two more seconds at most."""
    store = driver_of(request).store
    if not await run_in_threadpool(lambda: store.revoke_token(token, store.now())):
        raise ProblemError(404, f"there is no token {token}")
    request.app.state.waits.revoked(token)
    return Response(status_code=204)
