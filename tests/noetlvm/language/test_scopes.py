"""The names by position are the table of S11, and what is known of them hangs together."""

import pytest

from noetlvm.language.scopes import (
    BARE_NAME_ORDER,
    FIELDS,
    FOR_LOOP_FIELDS,
    LOOP_ONLY,
    NAMESPACES,
    VISIBLE,
    Shape,
    TemplatePosition,
    given_fields,
    is_open,
)

S11 = {
    TemplatePosition.ADMIT: "workload ctx args event execution_id",
    TemplatePosition.ARC_WHEN: "workload ctx args event execution_id",
    TemplatePosition.ARC_ARGS: "workload ctx args event execution_id",
    TemplatePosition.LOOP_IN: "workload ctx args execution_id iter",
    TemplatePosition.TASK_INPUT: "workload keychain ctx iter args execution_id _prev _task _attempt",
    TemplatePosition.TASK_POLICY: "workload keychain ctx iter args execution_id _prev _task _attempt outcome",
}


@pytest.mark.parametrize("position", S11)
def test_visible_names_are_those_of_s11(position: TemplatePosition) -> None:
    assert VISIBLE[position] == set(S11[position].split())


def test_every_position_has_a_row_and_a_title_of_its_own() -> None:
    assert set(VISIBLE) == set(TemplatePosition)
    assert len({position.value for position in TemplatePosition}) == len(TemplatePosition)


def test_patches_and_delays_see_what_their_rule_sees() -> None:
    assert (
        VISIBLE[TemplatePosition.TASK_PATCH]
        == VISIBLE[TemplatePosition.TASK_DELAY]
        == VISIBLE[TemplatePosition.TASK_POLICY]
    )


def test_sugar_sees_no_outcome_and_static_data_sees_nothing() -> None:
    assert VISIBLE[TemplatePosition.SUGAR_WHEN] == VISIBLE[TemplatePosition.TASK_INPUT]
    assert not VISIBLE[TemplatePosition.STATIC]


def test_every_visible_name_has_a_meaning_and_every_meaning_is_visible_somewhere() -> None:
    assert set(NAMESPACES) == frozenset().union(*VISIBLE.values())
    assert all(NAMESPACES.values())


def test_names_of_a_loop_and_of_bare_lookup_are_namespaces() -> None:
    assert set(NAMESPACES) >= LOOP_ONLY
    assert set(BARE_NAME_ORDER) <= set(NAMESPACES)


def test_every_field_stands_under_a_known_object_or_open_data() -> None:
    parents = {path.rpartition(".")[0] for path in FIELDS if "." in path}
    assert {FIELDS[parent].shape for parent in parents} <= {Shape.OBJECT, Shape.DATA}


def test_every_object_has_fields_and_every_field_a_meaning() -> None:
    assert all(given_fields(path) for path, field in FIELDS.items() if field.shape is Shape.OBJECT)
    assert all(field.doc.endswith(".") for field in FIELDS.values())


def test_the_outcome_has_the_fields_of_its_envelope_and_no_others() -> None:
    assert given_fields("outcome") == {"status", "result", "error", "meta", "http", "pg", "py"}
    assert not is_open("outcome")


def test_anything_may_stand_under_data_and_under_what_is_unknown() -> None:
    assert is_open("outcome.result")
    assert is_open("outcome.result.data.paging")
    assert is_open("iter")


def test_nothing_stands_under_a_plain_value() -> None:
    assert not is_open("outcome.status")
    assert not given_fields("outcome.status")


def test_the_runtime_gives_an_iteration_its_index_and_its_parent() -> None:
    assert given_fields("iter") == {"index", "parent"}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("outcome.status", {"ok", "error"}),
        ("event.name", {"step.done", "step.failed", "loop.done"}),
        ("event.status", {"success", "error"}),
    ],
)
def test_closed_values(path: str, values: set[str]) -> None:
    assert set(FIELDS[path].values) == values


def test_the_fields_of_a_templates_own_loop_are_jinjas() -> None:
    from jinja2.runtime import LoopContext, Undefined

    loop = LoopContext([1], Undefined)
    assert [name for name in FOR_LOOP_FIELDS if not hasattr(loop, name)] == []
