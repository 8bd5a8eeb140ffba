"""`kind: quantum`: submits a job, polls until it is done, and returns counts, cost and queue time."""

from __future__ import annotations

import asyncio
import time

from noetl_quantum.provider import Job, Provider, ProviderError
from noetlvm.language.tool_kinds import Choice, Input, Setting, ToolKind, time_limit
from noetlvm.tools.call import Outcome, Resources, ToolCall, error, ok

KIND = ToolKind(
    name="quantum",
    summary="Runs a circuit on a quantum computer: as a whole, or submitted by one task and polled for by another.",
    example="""\
kind: quantum
auth: lab
backend: small
circuit: [[h, 0], [cx, 0, 1]]
shots: 1000
""",
    result="`{job_id, backend, counts, shots, cost, queue_time_s}`; `counts` maps bits to how often they were measured",
    result_fields=("job_id", "backend", "counts", "shots", "cost", "queue_time_s"),
    inputs=(
        Input(
            "operation",
            ("string",),
            "`run` submits and waits; `submit` gives `job_id`; `result` of a job that is queued is a retryable error.",
            default="run",
            choices=("run", "submit", "result"),
        ),
        Input("circuit", ("array",), "Gates, each a list: [h, 0], [x, 0], [ry, 0, angle], [cx, 0, 1]."),
        Input("job_id", ("string",), "The job whose result is wanted."),
        Input("backend", ("string",), "Where to run it: `simulator`, `small` or `large`.", default="simulator"),
        Input("shots", ("integer",), "How often to measure.", default=1000),
        Input("seed", ("integer",), "Makes the measured outcomes repeatable.", default=0),
    ),
    choices=(Choice(("circuit", "job_id"), "exactly one"),),
    settings=(time_limit(600), Setting("poll", ("number",), "Seconds between two queries of the status.", 0.02)),
    takes_auth=True,
    spellings={"device": "backend", "timeout": "spec.timeout"},
)


class Session:
    """The connection to the provider, shared by the tasks of a worker."""

    def __init__(self) -> None:
        self.provider = Provider()

    async def close(self) -> None:
        """Nothing is open: the provider is simulated."""


async def run(call: ToolCall, resources: Resources) -> Outcome:
    """Do the operation; cancelled while it waits, the job is cancelled too."""
    if call.auth is None:
        return error("input", "`auth` must name a keychain entry with the provider's token")
    provider = resources.get("quantum", Session).provider
    try:
        if call.inputs["operation"] == "result":
            return _result(provider, call.inputs.get("job_id", ""))
        job = _submitted(provider, call)
        if call.inputs["operation"] == "submit":
            return ok({"job_id": job.id, "backend": job.backend, "shots": job.shots})
        await _done(provider, job, call.spec["poll"])
        return _result(provider, job.id)
    except ProviderError as refused:
        return error("quantum", str(refused), retryable=refused.is_transient)


def _submitted(provider: Provider, call: ToolCall) -> Job:
    inputs = call.inputs
    if "circuit" not in inputs:
        raise ProviderError(f"`{inputs['operation']}` needs `circuit`")
    # The key of the task run makes it idempotent: a retry after a crash finds the job, and does not pay for another.
    return provider.submit(
        call.key, inputs["backend"], inputs["circuit"], inputs["shots"], inputs["seed"], time.monotonic()
    )


async def _done(provider: Provider, job: Job, poll: float) -> None:
    try:
        while provider.status(job.id, time.monotonic()) != "done":
            await asyncio.sleep(poll)
    except asyncio.CancelledError:
        provider.cancel(job.id)
        raise


def _result(provider: Provider, job_id: str) -> Outcome:
    return ok({"job_id": job_id, **provider.result(job_id, time.monotonic())})
