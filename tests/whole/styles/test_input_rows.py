"""Every input in use, and the playbooks that run it on a real server of its kind.

`test_styles.py` runs them; here is the list, and what no single right playbook can show.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from noetlc.lint.fixing import fix_text
from noetlvm.bridge import CompilationError, compile_playbooks, compile_texts
from noetlvm.engine.engine import Engine
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.active import Ending
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.runner import ToolRunner
from noetlvm.worker.pipeline_run import SystemClock
from tests.commands import Command, noetlvm
from tests.whole.styles.real_servers import FOLDER, http_server
from tests.whole.styles.test_styles import RIGHT, findings

__all__ = ["noetlvm"]

ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "python": {
        "args: ": ("python-args",),
        "input: ": ("python-input",),
        "input_data": ("python-input-data",),
        "libs: [": ("python-libs-list",),
        "libs: {": ("python-libs-mapping",),
        "script:": ("python-script-inline", "python-script-file", "python-script-at-run-time", "python-script-http"),
        "return ": ("python-return",),
        "context": ("python-context",),
    },
    "http": {
        "payload: ": ("http-endpoint-and-payload",),
        "data: ": ("http-data-text",),
        "json: ": ("http-json",),
        "body: ": ("http-body-mapping",),
        "endpoint: ": ("http-endpoint-and-payload",),
        "timeout: ": ("http-verify-ssl-and-timeout",),
        "verify_ssl: ": ("http-verify-ssl-and-timeout",),
        "follow_redirects: ": ("http-follow-redirects",),
        "auth: {": ("http-auth-source", "http-auth-forms"),
    },
    "postgres": {
        "query: ": ("postgres-query-and-credential",),
        "command: ": ("postgres-rows",),
        "credential: ": ("postgres-query-and-credential",),
        'auth: "{{': ("postgres-auth-over-a-default",),
        "pool: ": ("postgres-script-and-pool",),
        "script: ": ("postgres-script-and-pool", "postgres-script-file"),
        "with: ": ("postgres-timeout-and-with", "postgres-script-file"),
        "timeout: ": ("postgres-timeout-and-with",),
        "statements": ("postgres-statements",),
        "params: ": ("postgres-list-parameter",),
        "rows: ": ("postgres-rows",),
    },
    "duckdb": {
        "query: ": ("duckdb-query",),
        "commands:": ("duckdb-commands",),
        "params: ": ("duckdb-params",),
        "script: ": ("duckdb-script-file",),
        "auth: ": ("duckdb-attach-file", "duckdb-attach-postgres"),
        "attach: ": ("duckdb-attach-s3", "duckdb-attach-gcs"),
    },
    "playbook": {
        "args: ": ("playbook-args",),
        "payload: ": ("playbook-payload-and-timeout",),
        "input: ": ("playbook-input-and-return-step",),
        "workload: ": ("playbook-workload",),
        "return_step: ": ("playbook-input-and-return-step",),
        "timeout: ": ("playbook-payload-and-timeout",),
    },
    "shell": {"cmds:": ("shell-cmds",), "command: [": ("shell-command-list",)},
    "nats": {
        "subject: ": ("nats-messages",),
        "operation: request": ("nats-messages",),
        "operation: kv_put": ("nats-kv",),
        "operation: object_put": ("nats-object",),
    },
    "noop": {"set_ctx: ": ("while-counts",)},
    "workbook": {"task: ": ("workbook-task", "workbook-labels")},
    "secrets": {"secret: ": ("secrets-environment",)},
}
"""By kind: how the input is written, and the right playbooks with it."""


@pytest.mark.parametrize(
    ("kind", "written", "name"),
    [(kind, written, name) for kind, rows in ROWS.items() for written, names in rows.items() for name in names],
)
def test_an_input_in_use_is_in_a_playbook_that_runs(kind: str, written: str, name: str) -> None:
    style = next(style for style in RIGHT if style.name == name)
    assert f"kind: {kind}" in style.text
    assert written in style.text
    assert "result" in style.expect or "ctx" in style.expect


def run(bundle: bytes, payload: dict[str, Any]) -> Ending:
    """Run a bundle in an engine of its own, with real tools."""

    async def once() -> Ending:
        engine = Engine(MemoryStore(), MemoryResults(), ToolRunner(), clock=SystemClock())
        execution = engine.start(Bundle.of(bundle), payload)
        await asyncio.wait_for(engine.run(), 60)
        return engine.ending(execution)

    return asyncio.run(once())


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_proxy")
def test_a_script_whose_web_address_is_written_out_runs_when_its_server_is_gone(tmp_path: Path) -> None:
    playbook = tmp_path / "flow.yaml"
    with http_server() as port:
        text = (FOLDER / "python-script-http.yaml").read_text("utf-8")
        playbook.write_text(text.replace('"{{ workload.api }}"', f"http://127.0.0.1:{port}"), "utf-8")
        bundle = compile_playbooks([str(playbook)], quiet=True)
    assert run(bundle, {}).result == 42


@pytest.mark.usefixtures("no_proxy")
def test_inputs_under_spec_run_after_the_fix_that_moves_them() -> None:
    fixed = fix_text((FOLDER / "input-under-spec.yaml").read_text("utf-8"), findings, unsafe=True)
    with http_server() as port:
        ending = run(compile_texts([fixed.text]), {"api": f"http://127.0.0.1:{port}"})
    assert (ending.status, ending.result) == ("success", "GET")


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(("name", "result"), [("python-retry", 2), ("http-retry", 3), ("playbook-retry", 3)])
def test_a_retry_of_a_task_is_refused_and_repeats_it_after_the_fix_that_writes_the_policy(
    name: str, result: int
) -> None:
    child = [file.read_text("utf-8") for file in FOLDER.glob(f"{name}.child.yml")]
    text = (FOLDER / f"{name}.yaml").read_text("utf-8")
    with pytest.raises(CompilationError, match="a task has no `retry`"):
        compile_texts([text, *child])
    fixed = fix_text(text, findings, unsafe=False)
    with http_server() as port:
        ending = run(compile_texts([fixed.text, *child]), {"api": f"http://127.0.0.1:{port}"})
    assert (ending.status, ending.result) == ("success", result)


@pytest.mark.parametrize("kind", ["oauth2", "google_id_token", "static"])
def test_a_keychain_kind_that_nothing_provides_is_refused_before_the_first_step(noetlvm: Command, kind: str) -> None:
    text = (FOLDER / "oauth2.yaml").read_text("utf-8").replace("kind: oauth2", f"kind: {kind}")
    Path("flow.yaml").write_text(text, "utf-8")
    answer = noetlvm("run", "flow.yaml")
    assert answer.code != 0
    assert f"`{kind}`" in answer.err
    assert "started" not in answer.err
