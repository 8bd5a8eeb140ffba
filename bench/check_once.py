"""Checks one playbook in a fresh process, timed stage by stage, and prints the seconds of processor time as JSON.

Usage: python -m bench.check_once FILE [--rules]

A fresh process, because a second check of one text finds its templates parsed already. Grammars and rules are loaded
before the clock starts: their cost belongs to start-up. Processor time, because a long check would else pay for all
that other processes do meanwhile, and a short one would not.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.generate_playbooks import playbook
from noetlc.analysis.model import Model
from noetlc.lint.check import check_bytes
from noetlc.rules.catalogue import all_rules
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.span import Source
from noetlc.syntax.yaml_reader import decode, read_document

_T = TypeVar("_T")
_SHARED = ("tasks_by_owner", "readings", "definitions", "flows", "secret_reads", "mappings_by_key")
"""What several rules read: made by the first that asks, so timed apart from all of them."""
_WARM_UP_LINES = 400
"""Long enough to hold every shape of step, so that nothing is done for the first time while the clock runs."""


class Stopwatch:
    """Seconds of processor time by stage; a stage may be entered more than once."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, stage: str, work: Callable[[], _T]) -> _T:
        """Do the work, and add its time to the stage's."""
        began = time.process_time()
        result = work()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.process_time() - began
        return result


def check_once(path: Path, *, by_rule: bool) -> dict[str, float]:
    """Check the playbook and return the seconds of each stage; with `by_rule`, each rule is a stage."""
    check_bytes("warm.yaml", playbook(0, _WARM_UP_LINES).encode())
    watch = Stopwatch()
    model = _read(path, watch)
    watch.time("templates", lambda: model.template_sites)
    for name in _SHARED:
        watch.time(f"shared {name}" if by_rule else "rules", lambda name=name: getattr(model, name))  # type: ignore[misc]
    for rule in all_rules():
        stage = f"{rule.code} {rule.name}" if by_rule else "rules"
        watch.time(stage, lambda rule=rule: list(rule().check(model)))  # type: ignore[misc]
    return watch.seconds


def _read(path: Path, watch: Stopwatch) -> Model:
    data = path.read_bytes()
    text, _ = watch.time("read", lambda: decode(data))
    document = watch.time("read", lambda: read_document(text))
    root = document.root
    if root is None:
        raise SystemExit(f"{path}: not YAML")
    parsed = watch.time("parse", lambda: parse_playbook(root))
    if parsed.playbook is None:
        raise SystemExit(f"{path}: no playbook")
    return Model(Source(str(path), text), document, parsed.playbook, document.problems + parsed.problems)


if __name__ == "__main__":
    gc.set_threshold(200_000, 50, 50)  # as the command line has it
    print(json.dumps(check_once(Path(sys.argv[1]), by_rule="--rules" in sys.argv)))
