"""Hostile playbooks get findings and exit codes; nothing else comes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PEAK_MB = 512
"""Memory of the process that tries all of them, one after the other."""


@pytest.mark.long
def test_no_input_ends_in_a_traceback_or_takes_much_memory() -> None:
    command = [sys.executable, "-m", "tests.whole.audit.hostile"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["wrong"] == {}
    assert report["inputs"] >= 367
    assert report["peak_mb"] < PEAK_MB
