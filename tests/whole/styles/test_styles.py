"""Playbooks in the styles that people use, on real tools and servers.

The right ones run with the result that their author would expect; a broken one has its findings and no others.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

import pytest

from noetlc.finding import Finding, Severity
from noetlc.lint.check import check_bytes
from noetlc.lint.fixing import fix_text
from noetlvm.bridge import compile_playbooks
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.keychain.shapes import secret_texts
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.active import Ending
from noetlvm.rounds.credentials import Credentials
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.runner import ToolRunner
from noetlvm.worker.pipeline_run import SystemClock
from tests.whole.styles.real_servers import FOLDER, TOKEN, Surroundings, bus, surroundings


class Style(NamedTuple):
    name: str
    text: str
    expect: dict[str, Any]

    @property
    def paths(self) -> list[str]:
        """The playbook, and the one that it runs."""
        return [str(FOLDER / f"{self.name}.yaml"), *map(str, FOLDER.glob(f"{self.name}.child.yml"))]


STYLES = [
    Style(file.stem, file.read_text("utf-8"), json.loads(file.with_suffix(".expect.json").read_text("utf-8")))
    for file in sorted(FOLDER.glob("*.yaml"))
]
RIGHT = [style for style in STYLES if not style.expect.get("broken")]


def named(style: Style) -> str:
    return style.name


@pytest.fixture(scope="session")
def endings(tmp_path_factory: pytest.TempPathFactory, postgres: str) -> dict[str, Ending]:
    """How every right playbook ends, all of them in one engine with real tools; they run once in a process."""
    with pytest.MonkeyPatch.context() as patch, surroundings(tmp_path_factory.mktemp("styles"), postgres) as found:
        patch.setenv("STYLES_SECRET", TOKEN)
        return asyncio.run(_run_all(found))


async def _run_all(found: Surroundings) -> dict[str, Ending]:
    def resolve(declared: tuple[Any, ...]) -> Credentials:
        secrets = {entry.name: found.secrets[entry.name] for entry in declared}
        return Credentials(secrets, secret_texts(secrets)) if secrets else Credentials()

    engine = Engine(MemoryStore(), MemoryResults(), ToolRunner(), EngineOptions(resolve=resolve), clock=SystemClock())
    for style in RIGHT:
        payload = {key: value for key, value in found.workload.items() if f" {key}: " in style.text}
        engine.start(Bundle.of(compile_playbooks(style.paths, quiet=True)), payload, style.name)
    async with bus(found.secrets["bus"]):
        await asyncio.wait_for(engine.run(), 300)
    return {style.name: engine.ending(style.name) for style in RIGHT}


def findings(text: str) -> list[Finding]:
    return list(check_bytes("style.yaml", text.encode()).findings)


def errors(text: str) -> int:
    return sum(finding.severity is Severity.ERROR for finding in findings(text))


def test_there_are_at_least_sixty_and_most_are_meant_to_be_right() -> None:
    assert len(STYLES) >= 60
    assert len(RIGHT) >= 40


@pytest.mark.parametrize("style", STYLES, ids=named)
def test_a_playbook_has_its_findings_and_no_others(style: Style) -> None:
    found = [f"{finding.severity} {finding.code}" for finding in findings(style.text)]
    assert found == style.expect["findings"]
    if style in RIGHT:
        assert not any(each.startswith("error") for each in found)


@pytest.mark.parametrize("style", RIGHT, ids=named)
def test_a_right_playbook_does_what_its_author_meant(style: Style, endings: dict[str, Ending]) -> None:
    ending = endings[style.name]
    assert (ending.status, ending.failures) == ("success", [])
    if "result" in style.expect:
        assert ending.result == style.expect["result"]
    for key, value in style.expect.get("ctx", {}).items():
        assert ending.ctx[key] == value


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("style", STYLES, ids=named)
def test_fixes_converge_in_one_run_and_add_no_error(style: Style, unsafe: bool) -> None:
    fixed = fix_text(style.text, findings, unsafe=unsafe)
    assert fixed.problem is None
    assert fix_text(fixed.text, findings, unsafe=unsafe).text == fixed.text
    assert errors(fixed.text) <= errors(style.text)
