"""`noetlvm conformance`."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.request import Json
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError
from noetlvm.conformance.report import CaseResult, SuiteReport
from noetlvm.conformance.stages import CommandImplementation, OwnImplementation, judge
from noetlvm.conformance.suite import FILES, Suite, selected
from noetlvm.nearest import did_you_mean

if TYPE_CHECKING:
    from noetlvm.conformance.report import CaseResult
    from noetlvm.conformance.suite import Case, Suite


class ConformanceMode(StrEnum):
    """Where cases of the stage `run` run."""

    EMBEDDED = "embedded"
    SQLITE = "sqlite"
    POSTGRES = "postgres"


def conformance(
    mode: Annotated[
        ConformanceMode,
        Option(
            help="embedded: in this process. sqlite: a server and two workers. postgres: two servers and two workers, "
            "with PostgreSQL and NATS."
        ),
    ] = ConformanceMode.EMBEDDED,
    stage: Annotated[
        list[str] | None,
        Option("--stage", metavar="STAGE", help="Stage to run; repeatable. [default: all; with a service, run]"),
    ] = None,
    case: Annotated[
        list[str] | None, Option("--case", metavar="ID", help="Case to run; repeatable. [default: all]")
    ] = None,
    command: Annotated[
        str | None,
        Option(metavar="COMMAND", help="Other implementation to test; it must follow the protocol of the suite."),
    ] = None,
    suite: Annotated[str | None, Option(metavar="DIR", help="Folder of the suite. [default: the shipped one]")] = None,
    store: Annotated[
        str | None, Option(metavar="STORE", help="Empty database for the service. [default: one for this run]")
    ] = None,
    wake: Annotated[str | None, Option(metavar="nats://…", help="NATS to use. [default: one for this run]")] = None,
    junit: Annotated[str | None, Option(metavar="FILE", help="Also write a JUnit report.")] = None,
    as_json: Json = False,
) -> int:
    """Run the conformance suite, and list which cases fail and which requirements no case checks.

    With a service, the log of every case must also equal that of the embedded engine, except for identifiers, times and
    the order that the definition leaves open.

    \b
    Examples:
      noetlvm conformance                        all stages, in this process
      noetlvm conformance --mode postgres --junit report.xml
      noetlvm conformance --command ./mylinter   another implementation

    Exit codes: 0 all cases pass and every requirement has a case, 1 otherwise, 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    _require_service_options(mode, store, wake)
    found = _suite(suite)
    cases = _cases(found, mode, stage, case, command)
    if mode is ConformanceMode.EMBEDDED:
        results = _results(cases, command)
    else:
        results = _service_results(cases, mode, store, wake)
    report = SuiteReport(command or mode.value, results, found.rows_without_case())
    if junit:
        Path(junit).write_bytes(report.junit())
    if as_json:
        print(json.dumps(report.to_data(), indent=2))
    else:
        print("\n".join(report.lines()))
    return SUCCESS if report.passed else FAILURE


def _suite(folder: str | None) -> Suite:
    if folder is not None and not (Path(folder) / "requirements.csv").is_file():
        raise CommandError(f"{folder} is not a conformance suite: it has no requirements.csv")
    found = Suite.found() if folder is None else Suite(Path(folder))
    if found is None:
        raise CommandError("no conformance suite is installed: give --suite DIR")
    return found


def _cases(
    suite: Suite, mode: ConformanceMode, stages: list[str] | None, names: list[str] | None, command: str | None
) -> list[Case]:
    is_service = mode is not ConformanceMode.EMBEDDED
    wanted = stages or (["run"] if is_service else list(FILES))
    for stage in wanted:
        if stage not in FILES:
            raise CommandError(f"there is no stage `{stage}`; there are {', '.join(FILES)}")
        if is_service and stage != "run":
            raise CommandError(f"the stage `{stage}` does not depend on the mode: leave out --mode")
    if is_service and command is not None:
        raise CommandError("--command and --mode exclude each other: the modes are those of this implementation")
    known = [case for stage in wanted for case in suite.cases(stage)]
    ids = {case.id for case in known}
    for name in names or ():
        if name not in ids:
            help = did_you_mean(name, ids) or "`ls` of the suite's folder shows them"
            raise CommandError(f"there is no case `{name}` of the stages {', '.join(wanted)}: {help}")
    return selected(known, names or ())


def _require_service_options(mode: ConformanceMode, store: str | None, wake: str | None) -> None:
    """Refuse what a mode would not use: a run that ignores it does not test it."""
    if mode is ConformanceMode.EMBEDDED and store is not None:
        raise CommandError("--store needs --mode sqlite or --mode postgres: embedded cases run in memory")
    if mode is not ConformanceMode.POSTGRES and wake is not None:
        raise CommandError("--wake needs --mode postgres: a single server wakes itself up")
    if mode is ConformanceMode.SQLITE and store is not None and store.startswith("postgresql:"):
        raise CommandError("--mode sqlite takes --store sqlite:FILE; for PostgreSQL, give --mode postgres")
    if mode is ConformanceMode.POSTGRES and store is not None and store.startswith("sqlite:"):
        raise CommandError(
            "--mode postgres takes --store postgresql://USER@HOST/DATABASE, because two servers cannot share a file"
        )


def _results(cases: list[Case], command: str | None) -> list[CaseResult]:
    implementation = OwnImplementation() if command is None else CommandImplementation(command)
    results = []
    with tempfile.TemporaryDirectory(prefix="noetlvm-") as folder:
        for case in cases:
            began = time.monotonic()
            problems = judge(case, implementation, Path(folder))
            results.append(CaseResult(case.stage, case.id, problems, time.monotonic() - began))
    return results


def _service_results(cases: list[Case], mode: ConformanceMode, store: str | None, wake: str | None) -> list[CaseResult]:
    results: list[CaseResult] = []
    from noetlvm.conformance.service_runs import judge_all, started

    with tempfile.TemporaryDirectory(prefix="noetlvm-") as folder, started(mode, Path(folder), store, wake) as cluster:
        judge_all(cluster, cases, lambda case, problems: results.append(CaseResult(case.stage, case.id, problems)))
        print(f"cases: {len(results)}, servers: {len(cluster.cluster.servers)}, workers: 2", file=sys.stderr)
    return sorted(results, key=lambda result: result.id)
