"""What the API takes and gives, as pydantic models: checked on the way in, described in OpenAPI on the way out."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from noetlvm.language.placement import POOL_CHARS_MAX
from noetlvm.service.problems import Diagnostic
from noetlvm.store.interface import PAGE_ROWS, CatalogueEntry, Execution

PAGE_MAX = 1_000
"""Rows that one page may have."""

PlaybookPath = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
ContentId = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]
Cursor = Annotated[str, StringConstraints(max_length=500)]
PageSize = Annotated[int, Field(ge=1, le=PAGE_MAX)]
DEFAULT_PAGE = PAGE_ROWS


def _finite(value: Any) -> Any:
    """Refuse numbers that Python's reader of JSON accepts though JSON has none."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float) and not isfinite(one):
            raise ValueError("NaN and Infinity are not JSON; write null, or a text")
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return value


JsonMapping = Annotated[dict[str, Any], AfterValidator(_finite)]


class Message(BaseModel):
    """A body of a request: unknown keys are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid")


class RegisteredPlaybook(BaseModel):
    """A version of a playbook."""

    path: str
    version: int = Field(description="Counts from 1 for each path.")
    bundle: str = Field(description="Content id of the compiled bundle.")
    registered: float = Field(description="When, in seconds since 1970.")

    @classmethod
    def of(cls, entry: CatalogueEntry) -> RegisteredPlaybook:
        return cls(**entry._asdict())


class Registration(RegisteredPlaybook):
    """The result of registering a playbook."""

    diagnostics: list[Diagnostic] = Field([], description="Warnings and notes of the linter.")


class PlaybookPage(BaseModel):
    """Playbooks, by path."""

    playbooks: list[RegisteredPlaybook]
    after: str | None = Field(None, description="Give it as `after` for the next page; null: this is the last one.")


class VersionPage(BaseModel):
    """Versions of one playbook, the latest first."""

    versions: list[RegisteredPlaybook]
    before: int | None = Field(None, description="Give it as `before` for the next page; null: this is the last one.")


class StartRequest(Message):
    """Starts an execution, of a registered playbook or of a bundle."""

    path: PlaybookPath | None = None
    version: int | None = Field(None, ge=1, le=2**31 - 1, description="Without it, the latest.")
    bundle: ContentId | None = Field(None, description="Content id, instead of path and version.")
    payload: JsonMapping = Field({}, description="Merged over the workload's defaults.")
    ctx: JsonMapping = Field({}, description="What ctx begins with.")


class RetryRequest(Message):
    """Continues a failed execution as a new one."""

    bundle: ContentId | None = Field(
        None,
        description="Content id of another bundle, which must decide the same on what happened so far.",
    )


class Started(BaseModel):
    """An execution that was started, now or before with the same key."""

    execution_id: str


class ExecutionView(BaseModel):
    """Status of an execution."""

    execution_id: str
    path: str
    name: str
    bundle: str
    status: Literal["running", "paused", "success", "failed", "cancelled"]
    started: float
    ended: float | None
    parent: str = Field(description="Execution that started this one as its child; empty: none.")
    trace_id: str = Field(description="Execution at the root of its request: all children share it.")
    counts: dict[str, int]
    event_count: int

    @classmethod
    def of(cls, row: Execution) -> ExecutionView:
        same = {name: getattr(row, name) for name in cls.model_fields if name != "event_count"}
        return cls(**same, event_count=row.seq)


class ExecutionPage(BaseModel):
    """Executions, the latest first."""

    executions: list[ExecutionView]
    before: str | None = Field(None, description="Give it as `before` for the next page; null: this is the last one.")


class EventPage(BaseModel):
    """Events in order."""

    events: list[dict[str, Any]] = Field(description="Envelopes, as `noetlvm events --json` prints them.")
    after: int | None = Field(None, description="Give it as `after` for the next page; null: there are no more yet.")


class EndingView(BaseModel):
    """The ending or the current status of an execution, as `noetlvm run --json` prints it."""

    execution_id: str
    status: str
    ctx: dict[str, Any]
    result: Any
    failures: list[dict[str, Any]]
    event_count: int


class TokenRequest(Message):
    """Creates a token."""

    scopes: list[Literal["admin", "run", "read", "worker"]] = Field(min_length=1, max_length=4)
    pools: list[Annotated[str, Field(min_length=1, max_length=POOL_CHARS_MAX)]] = Field(
        [], max_length=100, description="Pools that workers with the token serve. None: the default pool."
    )


class TokenView(BaseModel):
    """A token without its secret."""

    id: str
    scopes: list[str]
    created: float
    revoked: float | None


class NewToken(BaseModel):
    """A token that was created: its text is shown once."""

    token: str
    id: str
    scopes: list[str]


class Health(BaseModel):
    """Whether the server works."""

    status: Literal["ok"] = "ok"
