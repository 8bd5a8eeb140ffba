"""Real servers for tests."""

from __future__ import annotations

from noetlvm.conformance.databases import nats_server, postgres_server

__all__ = ["nats_server", "postgres_server"]
