"""Whether and where a process writes OpenTelemetry traces, as the environment says.

Settings are the standard ones: OTEL_TRACES_EXPORTER (`otlp`, `console`, `none`), OTEL_EXPORTER_OTLP_ENDPOINT,
OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_SDK_DISABLED. Without them nothing is imported.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from noetlvm.store.interface import LogReader

if TYPE_CHECKING:
    from noetlvm.rounds.spans import TraceWriter

_EXPORTER, _ENDPOINTS = "OTEL_TRACES_EXPORTER", ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class TracingError(Exception):
    """Traces are configured and cannot be written. The message names what to install or set."""


def tracing_of(reader: LogReader) -> TraceWriter | None:
    """Return the trace writer that the environment configures; None: traces are off. Raises TracingError."""
    names = os.environ.get(_EXPORTER, "otlp" if any(map(os.environ.get, _ENDPOINTS)) else "none").strip().lower()
    if names in ("", "none") or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider, export

        from noetlvm.rounds.spans import TraceWriter

        if names == "otlp":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter: export.SpanExporter = OTLPSpanExporter()
        elif names == "console":
            exporter = export.ConsoleSpanExporter(out=sys.stderr)
        else:
            raise TracingError(f"{_EXPORTER}={names} is not a known exporter: write otlp, console or none")
    except ImportError as error:
        raise TracingError(f"traces need another package ({error.name}): pip install 'noetlc[otel]'") from None
    resource = Resource.create({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "noetlvm"})
    return TraceWriter(reader, TracerProvider(resource=resource), export.BatchSpanProcessor(exporter))
