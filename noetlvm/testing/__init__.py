"""For tests of playbooks: `run_playbook` runs one with scripted tools and a clock on which waiting costs nothing."""

from noetlvm.testing.result import CallMade, RunResult
from noetlvm.testing.run_playbook import run_playbook
from noetlvm.testing.script import ScriptError

__all__ = ["CallMade", "RunResult", "ScriptError", "run_playbook"]
