"""Errors as RFC 9457 problem documents. Every answer with a status of 400 and above is one."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noetlvm.store.interface import StoreError

MEDIA_TYPE = "application/problem+json"

_LOG = logging.getLogger("noetlvm.server")


class Diagnostic(BaseModel):
    """A finding of the linter, as `noetlc lint --format json` prints it."""

    code: str
    severity: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    help: str = ""


class ProblemDocument(BaseModel):
    """What is wrong with a request, and what to send instead."""

    type: str = Field("about:blank", description="Kind of the problem, as a URI.")
    title: str = Field(description="The kind in words; the same for all problems of one kind.")
    status: int = Field(description="The HTTP status code.")
    detail: str = Field("", description="What is wrong with this request.")
    instance: str = Field("", description="Of an unexpected error: its identifier in the server's log, as a URI.")
    diagnostics: list[Diagnostic] = Field([], description="Findings, where a playbook was refused.")


class ProblemError(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.diagnostics = list(diagnostics)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what a route declares, so that the OpenAPI description lists every answer."""
    always = (400, 401, 403, 408, 413, 429, 500, 503)
    return {
        status: {"model": ProblemDocument, "content": {MEDIA_TYPE: {}}, "description": HTTPStatus(status).phrase}
        for status in sorted({*always, *statuses})
    }


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> JSONResponse:
    """Return a problem document."""
    problem = ProblemDocument(title=HTTPStatus(status).phrase, status=status, detail=detail, **more)
    return JSONResponse(problem.model_dump(), status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def answer_with_problems(app: FastAPI) -> None:
    """Turn every error of an application into a problem document. Unexpected ones reveal no internals."""

    @app.exception_handler(ProblemError)
    async def on_problem(_request: Request, error: ProblemError) -> JSONResponse:
        return problem_response(error.status, error.detail, error.headers, diagnostics=error.diagnostics)

    @app.exception_handler(RequestValidationError)
    async def on_validation(_request: Request, error: RequestValidationError) -> JSONResponse:
        return problem_response(422, worded(error))

    @app.exception_handler(StarletteHTTPException)
    async def on_http(_request: Request, error: StarletteHTTPException) -> JSONResponse:
        return problem_response(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(StoreError)
    async def on_store(_request: Request, error: StoreError) -> JSONResponse:
        return problem_response(503, str(error), {"Retry-After": "1"})


def worded(error: RequestValidationError) -> str:
    """Return what is wrong with a request, and where."""
    return "; ".join(map(_worded, error.errors()))


def _worded(found: Mapping[str, Any]) -> str:
    *place, last = found["loc"]
    if found["type"] == "json_invalid":
        return f"the body is no JSON: {found['ctx']['error']} at character {last}"
    if found["type"] == "extra_forbidden":
        return f"{'.'.join(map(str, place))} has no `{last}`"
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"


class UnexpectedErrors:
    """ASGI middleware: an unexpected error is logged under an identifier, which is all that the answer contains.

    A request that is cancelled because the server stops gets an answer too: the client may send it again elsewhere.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_answer = False

        async def noted(message: Message) -> None:
            nonlocal has_answer
            has_answer = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if not has_answer:
                stopping = problem_response(503, "the server is stopping; send the request again", {"Retry-After": "1"})
                await stopping(scope, receive, send)
            raise
        except Exception as error:
            instance = uuid.uuid4().urn
            _LOG.error("%s %s failed as %s", scope["method"], scope["path"], instance, exc_info=error)
            if has_answer:
                raise  # the connection ends in the middle of the answer
            detail = "the server failed; its log has the reason, under the identifier that `instance` names"
            await problem_response(500, detail, instance=instance)(scope, receive, send)
