"""Routes that register and list playbooks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from noetlvm.bridge import CompilationError, compile_source
from noetlvm.bytecode.program import BundleError
from noetlvm.machine.loaded import Bundle
from noetlvm.rounds.active import unoffered_store
from noetlvm.service.access import Caller, Readers, requires
from noetlvm.service.driver import Driver
from noetlvm.service.models import (
    DEFAULT_PAGE,
    Cursor,
    PageSize,
    PlaybookPage,
    PlaybookPath,
    RegisteredPlaybook,
    Registration,
    VersionPage,
)
from noetlvm.service.problems import Diagnostic, ProblemError, documented
from noetlvm.service.tokens import holder_of

playbooks_router = APIRouter(tags=["playbooks"])

BUNDLE = "application/vnd.noetl.bundle"
YAML = "application/yaml"
_BODY = {"content": {YAML: {"schema": {"type": "string"}}, BUNDLE: {"schema": {"type": "string", "format": "binary"}}}}


def driver_of(request: Request) -> Driver:
    """Return the driver of the application that serves a request."""
    driver: Driver = request.app.state.driver
    return driver


def readers_of(request: Request) -> Readers:
    """Return the threads that read the store for requests."""
    readers: Readers = request.app.state.readers
    return readers


@playbooks_router.post(
    "/playbooks",
    status_code=201,
    dependencies=[requires("run")],
    responses=documented(415, 422),
    openapi_extra={"requestBody": {"required": True, **_BODY}},
)
async def register_playbook(request: Request) -> Registration:
    """Register a playbook as YAML, which the server lints and compiles, or as a bundle.

    One that has not changed keeps its version.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in (YAML, BUNDLE):
        raise ProblemError(415, f"send a playbook as `{YAML}`, or a bundle as `{BUNDLE}`")
    driver, body = driver_of(request), await request.body()
    return await run_in_threadpool(_register, driver, body, is_yaml=kind == YAML)


def _register(driver: Driver, body: bytes, *, is_yaml: bool) -> Registration:
    diagnostics: list[Diagnostic] = []
    if is_yaml:
        try:
            body, rows = compile_source("playbook.yaml", body)
        except CompilationError as error:
            found = [_diagnostic(row) for row in error.findings]
            raise ProblemError(422, "the playbook has errors", diagnostics=found) from None
        diagnostics = [_diagnostic(row) for row in rows]
    try:
        bundle = Bundle.of(body)
    except BundleError as error:
        raise ProblemError(422, f"the bundle is refused: {error}") from None
    unoffered = unoffered_store(driver.results, bundle.program)
    if unoffered:
        raise ProblemError(422, unoffered)
    entry = driver.store.register(bundle.program.main.path, bundle.id, bundle.data, driver.store.now())
    return Registration(**entry._asdict(), diagnostics=diagnostics)


def _diagnostic(row: dict[str, Any]) -> Diagnostic:
    return Diagnostic(**{name: row[name] for name in Diagnostic.model_fields if row.get(name) is not None})


@playbooks_router.get("/playbooks", dependencies=[requires("read")], responses=documented(422))
def list_playbooks(request: Request, after: Cursor = "", limit: PageSize = DEFAULT_PAGE) -> PlaybookPage:
    """List the latest version of each playbook, by path."""
    rows = driver_of(request).store.playbooks(after=after, limit=limit)
    return PlaybookPage(
        playbooks=list(map(RegisteredPlaybook.of, rows)), after=rows[-1].path if len(rows) == limit else None
    )


@playbooks_router.get("/playbooks/versions", dependencies=[requires("read")], responses=documented(404, 422))
def list_versions(
    request: Request,
    path: PlaybookPath,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    limit: PageSize = DEFAULT_PAGE,
) -> VersionPage:
    """List the versions of a playbook, the latest first."""
    store = driver_of(request).store
    if store.resolve(path) is None:
        raise ProblemError(404, f"no playbook is registered under `{path}`")
    rows = store.versions(path, before=before, limit=limit)
    last = rows[-1].version if len(rows) == limit and rows[-1].version > 1 else None
    return VersionPage(versions=list(map(RegisteredPlaybook.of, rows)), before=last)


@playbooks_router.get(
    "/bundles/{bundle}",
    response_class=Response,
    responses={200: {"content": {BUNDLE: {}}}, **documented(404, 422)},
)
async def get_bundle(
    request: Request, bundle: str, caller: Annotated[Caller, requires("read", "worker")], worker: str = ""
) -> Response:
    """Return a bundle's bytes: with the scope `read`, or to a worker that was given a command which names it."""
    data = await readers_of(request).read(caller, stored_bundle, driver_of(request), bundle, caller, worker)
    return Response(data, media_type=BUNDLE)


def stored_bundle(driver: Driver, bundle: str, caller: Caller, worker: str) -> bytes:
    """Return the bytes of a bundle that a caller may read."""
    holder = driver.workers.hub.workers.get(holder_of(caller.token, worker))
    if "read" not in caller.allowed and not (holder and any(grant.bundle == bundle for grant in holder.grants)):
        raise ProblemError(404, "no command of this worker names such a bundle")
    # From memory, where the server has it that handed the command out: a worker that waits for it renews nothing.
    data = found.data if (found := driver.library.bundles.known(bundle)) else driver.store.bundle(bundle)
    if data is None:
        raise ProblemError(404, f"there is no bundle {bundle}")
    return data
