"""For tests of playbooks: `run_playbook` runs one with scripted tools and a clock on which waiting costs nothing."""

from noetlvm.bridge import CompilationError
from noetlvm.bytecode.program import BundleError
from noetlvm.testing.result import CallMade, RunResult
from noetlvm.testing.run_playbook import run_playbook
from noetlvm.testing.script import ScriptError
from noetlvm.testing.simulation import EndlessError, NotTheFoldError

__all__ = [
    "BundleError",
    "CallMade",
    "CompilationError",
    "EndlessError",
    "NotTheFoldError",
    "RunResult",
    "ScriptError",
    "run_playbook",
]
