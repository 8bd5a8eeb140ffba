"""`noetlc compile`: playbooks to a bundle."""

from __future__ import annotations

from typing import Annotated

from noetlvm.command_line.declared import Argument, Option


def compile(
    files: Annotated[
        list[str],
        Argument(metavar="FILES", help="Playbooks: the main one, then those it runs. `-` is standard input."),
    ],
    output: Annotated[
        str | None,
        Option("--output", "-o", metavar="FILE", help="Where to. [default: the first file's, as .nbc]"),
    ] = None,
    strip: Annotated[bool, Option("--strip", help="Leave out the debug map; the id stays the same.")] = False,
    werror: Annotated[bool, Option("--werror", help="Stop at warnings too.")] = False,
    emit: Annotated[str, Option(metavar="nbc|asm|canon|json", help="What to make.")] = "nbc",
    config: Annotated[
        str | None,
        Option(metavar="FILE", help="Configuration; else the nearest noetlc.toml or [tool.noetlc] is used."),
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Findings only.")] = False,
) -> int:
    """Check playbooks and compile them into one bundle.

    Errors stop it, also those that a comment silences. Everything but a bundle goes to standard output.

    \b
    Examples:
      noetlc compile etl.yaml                      makes etl.nbc
      noetlc compile etl.yaml load.yaml -o x.nbc   two playbooks, the first is the main one
      noetlc compile etl.yaml --emit asm           the code, for people
      noetlc compile etl.yaml --emit canon         the canonical form, as YAML

    \b
    Exit codes: 0 compiled, 1 the playbooks have errors, 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    from noetlc.bundle.build import Emit, Order, compile_files
    from noetlc.lint.cannot_run import CannotRun, suggestion

    if emit not in list(Emit):
        raise CannotRun(f"nothing is called `{emit}`: --emit takes {', '.join(Emit)}.{suggestion(emit, list(Emit))}")
    return compile_files(Order(tuple(files), output, strip, werror, Emit(emit), config, quiet))
