"""`noetlc lint`: the options, as the user writes them."""

from __future__ import annotations

from typing import Annotated, Any

from noetlc.cli import ConfigOption
from noetlc.files import STDIN_NAME
from noetlc.finding import Severity, current_codes
from noetlc.lint.run import Color, LintOptions, LintRun
from noetlc.report.report import OutputFormat
from noetlc.settings import DialectChoice, FailOn, Settings, settings_for
from noetlvm.command_line.declared import Argument, Option


def lint(
    paths: Annotated[
        list[str] | None,
        Argument(metavar="PATHS", help="Files, folders or globs; `-` is standard input. Default: this folder."),
    ] = None,
    format: Annotated[OutputFormat, Option(help="Format of the report.")] = OutputFormat.TEXT,
    output: Annotated[str | None, Option(metavar="FILE", help="Write the report to a file.")] = None,
    select: Annotated[
        list[str] | None,
        Option(metavar="CODES", help="Report only these codes or prefixes (P103, P5). Repeat, or use commas."),
    ] = None,
    ignore: Annotated[list[str] | None, Option(metavar="CODES", help="Do not report these codes or prefixes.")] = None,
    fail_on: Annotated[
        FailOn | None, Option(help="Lowest severity that makes the exit code 1. [default: error]")
    ] = None,
    min_severity: Annotated[Severity | None, Option(help="Lowest severity to report. [default: note]")] = None,
    fix: Annotated[bool, Option("--fix", help="Apply safe fixes to the files.")] = False,
    unsafe_fixes: Annotated[
        bool, Option("--unsafe-fixes", help="With --fix or --diff: include fixes that may change the meaning.")
    ] = False,
    diff: Annotated[bool, Option("--diff", help="Show the changes of --fix without writing them.")] = False,
    baseline: Annotated[
        str | None, Option(metavar="FILE", help="Report only findings that are not in this file.")
    ] = None,
    write_baseline: Annotated[
        bool, Option("--write-baseline", help="Write the present findings to the baseline.")
    ] = False,
    config: ConfigOption = None,
    no_cache: Annotated[bool, Option("--no-cache", help="Ignore the cache and check every file.")] = False,
    jobs: Annotated[int | None, Option(min=1, metavar="N", help="Number of processes. [default: one per core]")] = None,
    statistics: Annotated[bool, Option("--statistics", help="Also count the findings of each rule.")] = False,
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="Print only findings, without summary, remarks and progress.")
    ] = False,
    color: Annotated[Color, Option(help="When to use colours.")] = Color.AUTO,
    dialect: Annotated[DialectChoice | None, Option(help="Check the files in this dialect. [default: auto]")] = None,
    max_document_bytes: Annotated[
        int | None, Option(min=1, metavar="N", help="Refuse larger files. [default: 8388608]")
    ] = None,
    stdin_filename: Annotated[str | None, Option(metavar="NAME", help="Name of standard input in the report.")] = None,
) -> int:
    """Find the mistakes in playbooks before they run.

    \b
    Examples:
      noetlc lint                              every playbook below this folder
      noetlc lint flows/etl.yaml --fix         apply safe fixes
      noetlc lint flows --format sarif --output lint.sarif
      cat etl.yaml | noetlc lint - --stdin-filename etl.yaml

    \b
    Exit codes: 0 clean, 1 findings, 2 could not run.
    `noetlc explain CODE` explains a finding.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    given = tuple(paths or ())
    around = (stdin_filename,) if stdin_filename and "-" in given else given
    settings = _override(
        settings_for(around, config),
        select=_codes(select),
        ignore=_codes(ignore),
        fail_on=fail_on,
        min_severity=min_severity,
        max_document_bytes=max_document_bytes,
        dialect=dialect,
    )
    options = LintOptions(
        paths=given,
        format=format,
        output=output,
        fix=fix,
        unsafe_fixes=unsafe_fixes,
        diff=diff,
        baseline=baseline,
        write_baseline=write_baseline,
        cache=not no_cache,
        jobs=jobs,
        statistics=statistics,
        quiet=quiet,
        color=color,
        stdin_name=stdin_filename or STDIN_NAME,
    )
    return LintRun(options, settings).run()


def _override(settings: Settings, **given: Any) -> Settings:
    """Put options over the configuration. `--select` also drops the configured `ignore`."""
    if given["select"] is not None and given["ignore"] is None:
        given["ignore"] = ()
    return settings._replace(**{name: value for name, value in given.items() if value is not None})


def _codes(given: list[str] | None) -> tuple[str, ...] | None:
    """Split `P1,P5` and repeated options; None if the option is absent."""
    if not given:
        return None
    words = [word.strip() for codes in given for word in codes.split(",")]
    return tuple(code for word in words if word for code in current_codes(word))
