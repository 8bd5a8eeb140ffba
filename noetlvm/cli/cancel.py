"""`noetlvm cancel`."""

from __future__ import annotations

from noetlvm.cli.control import control_execution
from noetlvm.cli.request import Database, OneExecution, ServerUrl


def cancel(execution: OneExecution, db: Database = None, server: ServerUrl = None) -> int:
    """Cancel an execution, whether or not a process runs it.

    Example: noetlvm cancel 0190f3c2
    """
    return control_execution(execution, "cancel", db, server)
