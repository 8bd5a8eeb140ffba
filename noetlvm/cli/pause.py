"""`noetlvm pause`."""

from __future__ import annotations

from noetlvm.cli.control import control_execution
from noetlvm.cli.request import Database, OneExecution, ServerUrl


def pause(execution: OneExecution, db: Database = None, server: ServerUrl = None) -> int:
    """Pause an execution: no new work starts until `noetlvm resume`.

    Example: noetlvm pause 0190f3c2
    """
    return control_execution(execution, "pause", db, server)
