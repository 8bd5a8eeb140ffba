"""`noetlvm replay`: folds a log from its first event, decides it again, and reports the first difference."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from noetlvm.bytecode.program import BundleError
from noetlvm.cli.data_text import shortened
from noetlvm.cli.database import find_execution, options_given, reading_results
from noetlvm.cli.request import Database, Json, LatestExecution, ServerUrl
from noetlvm.command_line.declared import Option
from noetlvm.command_line.printed import visible
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError
from noetlvm.data.encoding import encode
from noetlvm.data.references import as_json
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.payload import Offload
from noetlvm.replay.exact import replay_exactly
from noetlvm.rounds.recovery import folded, recovered

if TYPE_CHECKING:
    from noetlvm.data.event import Event
    from noetlvm.machine.loaded import Bundle
    from noetlvm.replay.course import Course
    from noetlvm.replay.exact import Divergence
    from noetlvm.replay.repeated_pipeline import Missing
    from noetlvm.store.interface import Execution, StoreReader

_SHOWN_CHARS = 400


class Disagreement(NamedTuple):
    """A disagreement with the log, and for a decision, the difference."""

    what: str
    decision: Divergence | None = None


def replay(
    execution: LatestExecution = None,
    bundle: Annotated[
        str | None, Option(metavar="FILE", help="Bundle (.nbc) or playbook to use instead of the recorded one.")
    ] = None,
    db: Database = None,
    server: ServerUrl = None,
    as_json_object: Json = False,
) -> int:
    """Repeat the decisions of an execution from its log, and report the first difference.

    With an edited playbook it shows the first decision that differs, and how the execution would have continued: every
    decision is repeated with the recorded outcomes, up to the first call whose outcome is not in the log.
    Exit codes: 0 the same, 1 it differs, 2 refused.

    Examples: noetlvm replay 0190f3c2, noetlvm replay --bundle edited.yaml --json
    """
    with reading_results(db, server) as (reader, fetch):
        row = find_execution(reader, execution, options_given(db, server))
        decided_with = _given(bundle) if bundle else _stored(reader, row)
        recorded_with = _stored(reader, row) if decided_with.id != row.bundle else None
        found = [*_of_the_fold(reader, row), *_of_the_decisions(reader, row, decided_with, recorded_with, fetch)]
    if as_json_object:
        print(as_json(_data(row, decided_with, found)))
    else:
        _report(row, decided_with, found)
    return FAILURE if found else SUCCESS


def _given(file: str) -> Bundle:
    from noetlvm.cli.run import bundle_of

    return bundle_of([file])


def _stored(reader: StoreReader, row: Execution) -> Bundle:
    if not row.bundle:
        raise CommandError(f"{row.execution_id} was refused before it had a bundle: there are no decisions to repeat")
    data = reader.bundle(row.bundle)
    if data is None:
        raise CommandError(f"the database has no bundle {row.bundle}; name it with --bundle")
    try:
        return Bundle.of(data)
    except BundleError as error:
        raise CommandError(f"{row.bundle} is not a bundle that can run: {error}") from None


# ---- comparing


def _of_the_fold(reader: StoreReader, row: Execution) -> Iterator[Disagreement]:
    """Yield where the log, its snapshot and its row do not agree."""
    state = folded(reader, row.execution_id)
    if state.seq != row.seq:
        yield Disagreement(f"the log has {state.seq:,} events, the row has {row.seq:,}")
    # As bytes: NaN does not equal itself.
    if encode(recovered(reader, row.execution_id, row.bundle).to_data()) != encode(state.to_data()):
        yield Disagreement("the latest snapshot and the events after it give another state than all events do")
    if state.is_over != (row.ended is not None) or (state.is_over and state.status != row.status):
        yield Disagreement(f"the log has the status {state.status}, the row has {row.status}")


def _of_the_decisions(
    reader: StoreReader, row: Execution, bundle: Bundle, recorded_with: Bundle | None, fetch: Callable[[str], bytes]
) -> Iterator[Disagreement]:
    """Yield where the bundle would have decided something else than the log records: the first place, or none."""
    recorded = recorded_with and recorded_with.program.playbooks.get(row.path)
    playbook = bundle.program.playbooks.get(row.path)
    if playbook is None:
        yield Disagreement(f"the bundle has no playbook `{row.path}`")
        return
    offload = Offload(playbook.limits.max_payload_bytes, lambda reference: fetch(reference.key))
    divergence = replay_exactly(playbook, list(reader.events(row.execution_id)), offload, recorded_with=recorded)
    if divergence is not None:
        yield Disagreement(f"event {divergence.difference.seq:,} is decided differently", divergence)


# ---- report


def _report(row: Execution, bundle: Bundle, found: list[Disagreement]) -> None:
    if bundle.id != row.bundle:
        note = f"it was recorded with the bundle {row.bundle[:16]} and is decided with {bundle.id[:16]}"
        print(f"{row.execution_id}: {note}", file=sys.stderr)
    for what, decision in found:
        place = f" at {decision.difference.place}" if decision and decision.difference.place else ""
        print(f"{row.execution_id}: {what}{place}", file=sys.stderr)
        if decision:
            print("\n".join(_compared(decision)), file=sys.stderr)
            for line in _course_lines(decision.course):
                print(visible(line), file=sys.stderr)
    if not found:
        print(f"{row.execution_id}: {row.seq:,} events fold to what is recorded and are decided again: {row.status}")


def _compared(decision: Divergence) -> Iterator[str]:
    """Yield what was recorded and what is decided; of two events of one name, only where they differ."""
    expected, found = decision.difference.expected, decision.difference.found
    if decision.missing is None and expected and found and expected.name == found.name:
        recorded, decided = _differing(expected.data, found.data)
        yield f"  recorded: {_line(expected, recorded)}"
        yield f"  decided:  {_line(found, decided)}"
        return
    yield f"  recorded: {_line(expected)}"
    yield f"  decided:  {_line(found) if decision.missing is None else _missing_line(decision.missing)}"


def _differing(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two values without the fields that are equal in both."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping) or one == other:
        return one, other
    parts: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for key in dict.fromkeys([*one, *other]):
        if key not in one or key not in other:
            parts[key not in one][key] = (one if key in one else other)[key]
        elif one[key] != other[key]:
            parts[0][key], parts[1][key] = _differing(one[key], other[key])
    return parts


def _missing_line(missing: Missing) -> str:
    where = f"{missing.step}[{missing.iteration}]" if missing.iteration else missing.step
    return f"`{missing.task}` of `{where}` calls `{missing.kind}`, attempt {missing.attempt}: {missing.reason}"


def _course_lines(course: Course | None) -> Iterator[str]:
    if course is None:
        return
    if course.steps:
        yield f"  then:     {', '.join(course.steps)}"
    if course.missing:
        yield f"  stops at: {_missing_line(course.missing)}"
    elif course.status == "running":
        yield "  ends:     not within the outcomes of the log"
    else:
        result = "" if course.result is None else f", result {shortened(course.result, _SHOWN_CHARS)}"
        yield f"  ends:     {course.status}{result}"
    if course.ctx:
        yield f"  ctx:      {shortened(course.ctx, _SHOWN_CHARS)}"


def _line(event: Event | None, data: Any = None) -> str:
    if event is None:
        return "nothing"
    where = f" of run {event.run}" if event.run else ""
    where += f"[{event.iteration}]" if event.iteration else ""
    return f"{event.name}{where} {shortened(event.data if data is None else data, _SHOWN_CHARS)}"


def _data(row: Execution, bundle: Bundle, found: list[Disagreement]) -> dict[str, Any]:
    return {
        "execution_id": row.execution_id,
        "status": row.status,
        "event_count": row.seq,
        "recorded_with": row.bundle,
        "decided_with": bundle.id,
        "differences": [{"what": what} | (_decision_data(decision) if decision else {}) for what, decision in found],
    }


def _decision_data(decision: Divergence) -> dict[str, Any]:
    difference, missing, course = decision
    expected, found = (event and event._asdict() for event in (difference.expected, difference.found))
    data = {"seq": difference.seq, "place": difference.place, "expected": expected, "found": found}
    data["missing"] = missing and missing._asdict()
    if course is not None:
        data["course"] = course._asdict() | {"missing": course.missing and course.missing._asdict()}
    return data
