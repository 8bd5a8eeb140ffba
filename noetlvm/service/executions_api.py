"""Routes that start, watch and control executions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Recorded, envelope
from noetlvm.data.references import Reference, plain
from noetlvm.machine.instructions import failure
from noetlvm.machine.loaded import Bundle
from noetlvm.rounds.credentials import UnresolvedError
from noetlvm.rounds.recovery import recovered
from noetlvm.rounds.requests import BadRequestError, PreparedRetry, RefusedRetryError, ReusedKeyError
from noetlvm.service.access import Caller, requires
from noetlvm.service.driver import Driver
from noetlvm.service.models import (
    DEFAULT_PAGE,
    ContentId,
    Cursor,
    EndingView,
    EventPage,
    ExecutionPage,
    ExecutionView,
    PageSize,
    PlaybookPath,
    RetryRequest,
    Started,
    StartRequest,
)
from noetlvm.service.playbooks_api import driver_of
from noetlvm.service.problems import ProblemError, documented, worded
from noetlvm.service.waits import OpenWaits, WaitEndedError
from noetlvm.store.interface import Execution, StoreError
from noetlvm.testing.log import state_view


class _StartRoute(APIRoute):
    """Starts executions; records a request that names a playbook and whose body cannot be accepted (S61)."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def recorded(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                name = _named(error.body)
                if name:
                    refuse = driver_of(request).refuse
                    await run_in_threadpool(refuse, failure("request", worded(error)), name)
                raise

        return recorded


_NAME: TypeAdapter[str] = TypeAdapter(PlaybookPath | ContentId)


def _named(body: Any) -> str:
    """Return the path or the bundle that a body names; an empty text if it names none that could exist."""
    wanted = (body.get("path") or body.get("bundle")) if isinstance(body, dict) else None
    try:
        return _NAME.validate_python(wanted)
    except ValidationError:
        return ""


executions_router = APIRouter(tags=["executions"])

Seq = Annotated[int, Query(ge=0, le=2**53)]
MSGPACK = "application/vnd.msgpack"
POLL_SECONDS = 1.0
"""Seconds between polls for events that another server wrote."""
RETRY_MILLISECONDS = 1_000
"""When a client may request a stream again that was interrupted."""
EVENTS_AT_ONCE = 500
IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=200)]
Status = Literal["running", "paused", "success", "failed", "cancelled"]


async def start_execution(request: Request, wanted: StartRequest, idempotency_key: IdempotencyKey = None) -> Response:
    """Start an execution. Equal requests with one `Idempotency-Key` start one; with the key of another, it is 422."""
    driver = driver_of(request)
    try:
        # A thread costs more than all the rest of a start, and is needed only to read the store.
        if wanted.path is None and wanted.bundle is not None and wanted.bundle in driver.library.bundles:
            bundle = _bundle(driver, wanted)
        else:
            bundle = await run_in_threadpool(_bundle, driver, wanted)
    except ProblemError as problem:
        name = wanted.path or wanted.bundle
        if name:
            await run_in_threadpool(driver.refuse, failure("playbook", str(problem)), name)
        raise
    try:
        is_latest = wanted.path is not None and wanted.version is None
        id = await driver.start(bundle, wanted.payload, wanted.ctx, idempotency_key or "", is_latest=is_latest)
    except (BadRequestError, ReusedKeyError) as error:
        raise ProblemError(422, str(error)) from None
    # Its text, and not the model: the framework would validate that again.
    return Response(Started(execution_id=id).model_dump_json(), 201, media_type="application/json")


executions_router.add_api_route(
    "/executions",
    start_execution,
    methods=["POST"],
    status_code=201,
    dependencies=[requires("run")],
    response_model=Started,
    responses=documented(404, 409, 422),
    route_class_override=_StartRoute,
)


def _bundle(driver: Driver, wanted: StartRequest) -> Bundle:
    if (wanted.path is None) == (wanted.bundle is None):
        raise ProblemError(422, "name a playbook by `path`, or a bundle by `bundle`")
    id = wanted.bundle
    if wanted.path is not None:
        entry = driver.store.resolve(wanted.path, wanted.version)
        if entry is None:
            version = f" in version {wanted.version}" if wanted.version else ""
            raise ProblemError(404, f"no playbook is registered under `{wanted.path}`{version}")
        id = entry.bundle
    return _stored_bundle(driver, id or "")


def _stored_bundle(driver: Driver, id: str) -> Bundle:
    found = driver.library.bundles.get(id)
    if found is None:
        raise ProblemError(404, f"there is no bundle {id}")
    return found


@executions_router.get("/executions", dependencies=[requires("read")], responses=documented(404, 422))
def list_executions(
    request: Request,
    status: Status | None = None,
    path: PlaybookPath | None = None,
    parent: Cursor | None = None,
    before: Cursor | None = None,
    limit: PageSize = DEFAULT_PAGE,
) -> ExecutionPage:
    """List executions, the latest first."""
    try:
        rows = driver_of(request).store.executions(status=status, path=path, parent=parent, before=before, limit=limit)
    except StoreError as error:
        raise ProblemError(404, str(error)) from None
    views = list(map(ExecutionView.of, rows))
    return ExecutionPage(executions=views, before=rows[-1].execution_id if len(rows) == limit else None)


def _row(request: Request, execution_id: str) -> Execution:
    """Return an execution by its identifier, or by a part of it that no other has."""
    found = driver_of(request).store.find(execution_id, 2) if execution_id else []
    if not found:
        raise ProblemError(404, f"there is no execution {execution_id}")
    if len(found) > 1:
        raise ProblemError(404, f"several executions match {execution_id}: give more of the identifier")
    return found[0]


@executions_router.get("/executions/{execution_id}", dependencies=[requires("read")], responses=documented(404, 422))
def show_execution(request: Request, execution_id: str) -> ExecutionView:
    """Show the status of an execution."""
    return ExecutionView.of(_row(request, execution_id))


@executions_router.get(
    "/executions/{execution_id}/ending", dependencies=[requires("read")], responses=documented(404, 422)
)
def show_ending(request: Request, execution_id: str) -> EndingView:
    """Show the ending of an execution, or its current status: ctx, result and failures."""
    ending = driver_of(request).ending(_row(request, execution_id))
    return EndingView(**plain(ending._asdict()))


@executions_router.get(
    "/executions/{execution_id}/state", dependencies=[requires("read")], responses=documented(404, 422)
)
def show_state(request: Request, execution_id: str, seq: Seq | None = None) -> dict[str, Any]:
    """Return the state after an event, or the latest: tokens, open runs, ctx and results."""
    row = _row(request, execution_id)
    if seq is not None and seq > row.seq:
        raise ProblemError(404, f"there is no event {seq}; the last one is {row.seq}")
    state = recovered(driver_of(request).store, row.execution_id, row.bundle, seq)
    view: dict[str, Any] = plain(state_view(state))
    return view


@executions_router.get(
    "/executions/{execution_id}/events",
    dependencies=[requires("read")],
    response_model=EventPage,
    responses={200: {"content": {MSGPACK: {}}}, **documented(404, 422)},
)
def list_events(
    request: Request,
    execution_id: str,
    after: Seq = 0,
    limit: PageSize = DEFAULT_PAGE,
    accept: Annotated[str, Header(max_length=200)] = "",
) -> Any:
    """List the events of an execution after the one of this number.

    Accepting `application/vnd.msgpack` gives them as they are stored: JSON has no dates, and no times below a
    millisecond.
    """
    row = _row(request, execution_id)
    store = driver_of(request).store
    found = list(store.events(row.execution_id, after, min(after + limit, row.seq)))
    last = found[-1].seq if found and found[-1].seq < row.seq else None
    if MSGPACK in accept:
        rows = [[*recorded[:3], list(recorded.event)] for recorded in found]
        return Response(encode({"events": rows, "after": last}), media_type=MSGPACK)
    envelopes = [plain(envelope(row.execution_id, row.trace_id, recorded)) for recorded in found]
    return EventPage(events=envelopes, after=last)


@executions_router.get(
    "/executions/{execution_id}/events/live",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}, **documented(404, 422)},
)
async def follow_events(
    request: Request,
    execution_id: str,
    caller: Annotated[Caller, requires("read")],
    last_event_id: Annotated[int | None, Header(ge=0, le=2**53)] = None,
) -> StreamingResponse:
    """Send events as they are written, until the execution ends (server-sent events).

    The id of each is its sequence number: a client that reconnects with `Last-Event-ID` misses nothing. If the server
    stops, or the token is revoked, the last line has the field `retry`: the execution has not ended.
    """
    row = await run_in_threadpool(_row, request, execution_id)
    stream: AsyncIterator[str] = live_events(driver_of(request), row.execution_id, last_event_id or 0)
    stream = _while_allowed(request.app.state.waits, caller.token, stream)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _while_allowed(waits: OpenWaits, token: str, stream: AsyncIterator[str]) -> AsyncIterator[str]:
    try:
        while text := await waits.run(token, anext(stream, "")):
            yield text
    except WaitEndedError:
        yield f"retry: {RETRY_MILLISECONDS}\n\n"


async def live_events(driver: Driver, execution_id: str, after: int) -> AsyncIterator[str]:
    """Yield the events of an execution after a number, as they come, until it has ended."""
    news = asyncio.Event()
    latest: Execution | None = None
    """Its row, if this server has written it since the last poll."""

    def listen(written: Execution, _recorded: Sequence[Recorded]) -> None:
        nonlocal latest
        if written.execution_id == execution_id and (written.seq > after or written.ended is not None):
            latest = written
            news.set()

    driver.listeners.add(listen)
    try:
        while True:
            news.clear()
            row, latest = latest, None
            try:
                # The row first: if the execution has ended in it, all its events are there.
                row = row or await run_in_threadpool(driver.store.execution, execution_id)
                if row is None:
                    return
                while after < row.seq:
                    last = min(after + EVENTS_AT_ONCE, row.seq)
                    page = await run_in_threadpool(
                        lambda after, last: list(driver.store.events(execution_id, after, last)), after, last
                    )
                    if not page:
                        break
                    after = page[-1].seq
                    yield "".join(_text(row, recorded) for recorded in page)
                if row.ended is not None:
                    return
            except StoreError:
                pass  # it is read again: to a client, the end of the stream is that of the execution
            try:
                await asyncio.wait_for(news.wait(), POLL_SECONDS)
            except TimeoutError:
                yield ": waiting\n\n"  # notices a client that has left
    finally:
        driver.listeners.discard(listen)


def _text(row: Execution, recorded: Recorded) -> str:
    data = json.dumps(plain(envelope(row.execution_id, row.trace_id, recorded)), ensure_ascii=False)
    return f"id: {recorded.seq}\nevent: {recorded.event.name}\ndata: {data}\n\n"


@executions_router.get(
    "/executions/{execution_id}/result",
    dependencies=[requires("read")],
    responses=documented(404, 422),
)
def show_result(request: Request, execution_id: str) -> Any:
    """Return the result of an execution, read from the result store if it is large."""
    row = _row(request, execution_id)
    driver = driver_of(request)
    result = recovered(driver.store, row.execution_id, row.bundle).result
    return plain(decode(driver.results.get(result.key)) if type(result) is Reference else result)


@executions_router.post(
    "/executions/{execution_id}/retry",
    status_code=201,
    dependencies=[requires("run")],
    responses=documented(404, 409, 422),
)
async def retry_execution(
    request: Request, execution_id: str, wanted: RetryRequest | None = None, idempotency_key: IdempotencyKey = None
) -> Started:
    """Run the failed steps of a failed execution again, as a new execution whose log begins with the old one's."""
    driver = driver_of(request)
    row = await run_in_threadpool(_row, request, execution_id)
    try:
        prepared = await run_in_threadpool(_prepared_retry, driver, row, wanted or RetryRequest(bundle=None))
        id = await driver.retry(prepared, idempotency_key or "")
    except ReusedKeyError as error:
        raise ProblemError(422, str(error)) from None
    except (RefusedRetryError, UnresolvedError) as error:
        raise ProblemError(409, str(error)) from None
    return Started(execution_id=id)


def _prepared_retry(driver: Driver, row: Execution, wanted: RetryRequest) -> PreparedRetry:
    bundle = None if wanted.bundle is None else _stored_bundle(driver, wanted.bundle)
    return driver.library.prepare_retry(row.execution_id, bundle)


@executions_router.post(
    "/executions/{execution_id}/{action}",
    status_code=202,
    dependencies=[requires("run")],
    responses=documented(404, 409, 422),
)
async def control_execution(
    request: Request, execution_id: str, action: Literal["pause", "resume", "cancel"]
) -> ExecutionView:
    """Pause, resume or cancel an execution. It happens at the next decision."""
    row = await run_in_threadpool(_row, request, execution_id)
    driver = driver_of(request)
    try:
        await run_in_threadpool(driver.store.request, row.execution_id, action)
    except StoreError as error:
        raise ProblemError(409, str(error)) from None
    driver.wake()
    return ExecutionView.of(row)


@executions_router.delete(
    "/executions/{execution_id}",
    status_code=204,
    response_class=Response,
    dependencies=[requires("admin")],
    responses=documented(404, 409, 422),
)
def delete_execution(request: Request, execution_id: str) -> Response:
    """Delete an execution that has ended, with its events."""
    row = _row(request, execution_id)
    if row.ended is None:
        raise ProblemError(409, "the execution has not ended; cancel it first")
    driver_of(request).store.delete([row.execution_id])
    return Response(status_code=204)
