"""PostgreSQL and NATS for a campaign."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psycopg

from noetlvm.conformance.databases import NatsProcess, PostgresProcess


def refuse_writes(postgres: PostgresProcess, refuses: bool) -> None:
    """Refuse every write of other sessions, or none."""
    with psycopg.connect(postgres.address, autocommit=True, connect_timeout=30) as connection:
        connection.execute("SET default_transaction_read_only = off")
        value = "on" if refuses else "off"
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")  # type: ignore[arg-type]
        connection.execute("SELECT pg_reload_conf()")


@contextlib.contextmanager
def postgres_and_nats(folder: Path) -> Iterator[tuple[PostgresProcess, NatsProcess]]:
    """Start both; stop them at the end."""
    with contextlib.closing(PostgresProcess()) as postgres, contextlib.closing(NatsProcess(folder / "nats")) as nats:
        yield postgres, nats
