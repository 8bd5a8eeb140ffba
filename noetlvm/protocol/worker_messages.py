"""What a worker sends: its first message, and all others. Messages are msgpack.

A worker sends reports and the results that they refer to, returns commands that it cannot finish, and names the leases
that it renews by a beat, which the server acknowledges. It gets answers to its reports, commands to stop, and new
commands.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from noetlvm.language.placement import DEFAULT_POOL, POOL_CHARS_MAX
from noetlvm.protocol.messages import Part
from noetlvm.protocol.reported_events import NUMBER_MAX

SLOTS_MAX = 10_000

Identifier = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=500)]
Number = Annotated[int, Field(ge=1, le=NUMBER_MAX)]


class Hello(BaseModel):
    """The first message of a worker."""

    model_config = ConfigDict(extra="forbid")

    worker: str = Field(min_length=1, max_length=100, description="Identifier, new for each process.")
    pools: list[Annotated[str, Field(min_length=1, max_length=POOL_CHARS_MAX)]] = Field([DEFAULT_POOL], max_length=100)
    slots: int = Field(1, ge=1, le=SLOTS_MAX)


class ReportModel(BaseModel):
    """Events of one command."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=0)
    execution_id: Identifier
    run: Number
    iteration: Identifier
    lease: Number
    events: list[dict[str, Any]]
    """`reported_events` checks them."""


class LeaseModel(BaseModel):
    """A command that a worker has."""

    model_config = ConfigDict(extra="forbid")

    execution_id: Identifier
    run: Number
    iteration: Identifier
    lease: Number

    @property
    def part(self) -> Part:
        return self.execution_id, self.run, self.iteration


class ResultModel(BaseModel):
    """A large result."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(pattern="^[0-9a-f]{64}$", description="Checksum of its bytes.")
    data: bytes


class WorkerMessage(BaseModel):
    """What a worker sends."""

    model_config = ConfigDict(extra="forbid")

    reports: list[ReportModel] = []
    results: list[ResultModel] = Field([], description="Those that reports refer to.")
    slots: int | None = Field(None, ge=0, le=SLOTS_MAX, description="0: the worker takes no more commands.")
    released: list[LeaseModel] = Field([], description="Commands for another worker, or for this one again.")
    beat: int = Field(0, ge=0, description="Renews `held`; the server acknowledges the number. 0: no renewal.")
    held: list[LeaseModel] = Field([], max_length=SLOTS_MAX)
