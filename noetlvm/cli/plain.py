"""`noetlvm run` with its commonest options, read without typer: importing that takes longer than many a run does.

Whatever it does not know, it leaves to typer, help and complaints included.
"""

from __future__ import annotations

from collections.abc import Sequence

_FLAGS = {"--json": "json", "--quiet": "quiet", "-q": "quiet"}


def plain_run(arguments: Sequence[str]) -> int | None:
    """Run `run FILE… [--db FILE] [--json] [--quiet]` and return the exit code; None: it is something else."""
    command, *words = arguments or [""]
    files: list[str] = []
    flags: set[str] = set()
    database = None
    while words and command == "run":
        word = words.pop(0)
        if word in _FLAGS:
            flags.add(_FLAGS[word])
        elif word == "--db" and words and not words[0].startswith("-"):
            database = words.pop(0)
        elif word.startswith("-"):
            return None
        else:
            files.append(word)
    if not files:
        return None
    from noetlvm.cli.database import database_path
    from noetlvm.cli.drive import Manner
    from noetlvm.cli.run import run_files

    manner = Manner(database_path(database), as_json="json" in flags, quiet="quiet" in flags)
    return run_files(files, {}, manner)
