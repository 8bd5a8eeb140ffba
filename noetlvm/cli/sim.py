"""`noetlvm sim`: simulates the service with random playbooks and faults, and checks every log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import monotonic
from typing import Annotated

from noetlvm.atomic_file import write_atomically
from noetlvm.cli.request import Json
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError
from noetlvm.data.references import as_json
from noetlvm.sim.campaign import Campaign, ReportError, failure_text, run_seeds

_SEEDS = re.compile(r"(\d{1,15})\.\.(\d{1,15})?")
_DURATION = re.compile(r"(\d{1,6})(s|m|h)")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_SEEDS_SAVED = 1_000
"""Seeds after which the report of a campaign is written again."""


def sim(
    seeds: Annotated[str, Option("--seeds", metavar="A..B", help="Seeds, both ends included.")] = "0..99",
    jobs: Annotated[int, Option(min=1, metavar="N", help="Number of processes.")] = 1,
    duration: Annotated[
        str | None,
        Option("--for", metavar="TIME", help="Run seeds, starting with A, for this time, such as 30m or 8h."),
    ] = None,
    embedded: Annotated[
        bool, Option("--embedded", help="Simulate the embedded engine: one process that crashes and is resumed.")
    ] = False,
    report: Annotated[
        str | None,
        Option("--report", metavar="FILE", help="Create a report, or append the next seeds to it."),
    ] = None,
    as_json_object: Json = False,
) -> int:
    """Simulate servers, workers and clients under faults, one random playbook and schedule for each seed.

    The production code runs with a simulated clock, network and store; a separate checker reads the logs. The same seed
    gives the same bytes. It exits with 1 at the first seed that breaks an invariant, and prints the command that
    reproduces it and a small playbook and schedule that break the same invariant. A long campaign can run in parts with
    `--report`.

    Example: noetlvm sim --seeds 100..199 --jobs 2
    """
    first, last = _range(seeds)
    seconds = _seconds(duration)
    if last is None and seconds is None:
        raise CommandError("`--seeds A..` without an end needs `--for`")
    campaign, began = _campaign(report, first, is_embedded=embedded), monotonic()
    before = campaign.seeds
    try:
        for result in run_seeds(first, None if seconds is not None else last, jobs, seconds, is_embedded=embedded):
            campaign.add(result)
            if report is not None and not campaign.seeds % _SEEDS_SAVED:
                _save(campaign, Path(report))
            if result.violations:
                break
    finally:  # what an interrupted campaign has found counts
        if report is not None and campaign.seeds > before:
            _save(campaign, Path(report))
    if as_json_object:
        print(as_json(campaign.report()))
        return FAILURE if campaign.failing else SUCCESS
    for failing in campaign.failing:
        print(failure_text(failing))
        return FAILURE
    rate = (campaign.seeds - before) / max(0.001, monotonic() - began)
    print(f"{campaign.seeds:,} seeds, no invariant broken ({rate:.0f} seeds a second)")
    print(f"{campaign.executions:,} executions, {campaign.events:,} events, {campaign.seconds:,} virtual seconds")
    for kind in sorted(campaign.struck, key=lambda one: -campaign.struck[one]):
        print(f"  {campaign.share(kind):5.1f} %  {kind}")
    return SUCCESS


def _campaign(report: str | None, first: int, *, is_embedded: bool) -> Campaign:
    path = Path(report or "")
    if not path.parent.is_dir():
        raise CommandError(f"`--report {report}` cannot be written: there is no folder {path.parent}")
    if report is None or not path.exists():
        return Campaign(is_embedded=is_embedded)
    try:
        return Campaign.after(json.loads(path.read_bytes()), first, is_embedded=is_embedded)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"`--report {report}` cannot be read as a report: {error!r}") from None
    except ReportError as error:
        raise CommandError(f"`--report {report}` cannot be continued: {error}") from None


def _save(campaign: Campaign, path: Path) -> None:
    try:
        write_atomically(path, (as_json(campaign.report(), indent=1) + "\n").encode())
    except OSError as error:
        raise CommandError(f"`--report {path}` cannot be written: {error.strerror}") from None


def _range(text: str) -> tuple[int, int | None]:
    found = _SEEDS.fullmatch(text)
    if found is None:
        raise CommandError(f"`--seeds {text}` is not a range; write for instance `--seeds 100..199`")
    first, last = int(found[1]), int(found[2]) if found[2] else None
    if last is not None and last < first:
        raise CommandError(f"`--seeds {text}` is empty: the second number is less than the first")
    return first, last


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    found = _DURATION.fullmatch(text)
    if found is None:
        raise CommandError(f"`--for {text}` is not a duration; write for instance `--for 30m` or `--for 8h`")
    return int(found[1]) * _UNITS[found[2]]
