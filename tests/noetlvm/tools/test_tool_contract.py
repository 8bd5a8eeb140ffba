"""What holds for every tool kind."""

from pathlib import Path

import pytest
import yaml

import noetlvm.tools
from noetlvm.language.scopes import given_fields
from noetlvm.language.tool_kinds import Input, Setting, ToolKind, builtin_kinds

KINDS = list(builtin_kinds().values())
STRUCTURAL = {"kind", "spec", "name", "auth", "desc"}
PYTHON_TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def items_of(kind: ToolKind) -> list[Input | Setting]:
    return [*kind.inputs, *kind.settings]


def has_type(value: object, names: tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, PYTHON_TYPES[name]) for name in names)  # type: ignore[arg-type]


def test_one_file_a_kind_and_its_name_is_the_kinds() -> None:
    folder = Path(noetlvm.tools.__file__).parent
    files = {path.stem for path in folder.glob("*.py") if "\nKIND = " in path.read_text(encoding="utf-8")}
    assert files == set(builtin_kinds())


def test_the_kinds_of_formal_2_4_are_there() -> None:
    assert set(builtin_kinds()) >= {
        "http", "postgres", "duckdb", "python", "secrets", "playbook", "workbook", "noop",
    }  # fmt: skip


def test_the_table_of_kinds_cannot_be_changed_by_its_reader() -> None:
    builtin_kinds().clear()
    assert builtin_kinds()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
class TestEveryKind:
    def test_is_described(self, kind: ToolKind) -> None:
        assert kind.summary.endswith(".")
        assert kind.result
        assert all(item.doc.endswith(".") for item in items_of(kind))

    def test_names_each_input_and_setting_once(self, kind: ToolKind) -> None:
        for items in (kind.inputs, kind.settings):
            names = [item.name for item in items]
            assert len(set(names)) == len(names)

    def test_leaves_the_structural_keys_of_a_task_alone(self, kind: ToolKind) -> None:
        assert not STRUCTURAL & {item.name for item in kind.inputs}
        assert "policy" not in {item.name for item in kind.settings}

    def test_has_an_input_only_once_as_input_or_setting(self, kind: ToolKind) -> None:
        assert not {item.name for item in kind.inputs} & {item.name for item in kind.settings}

    def test_defaults_are_of_a_declared_type(self, kind: ToolKind) -> None:
        for item in items_of(kind):
            assert item.types
            assert item.default is None or has_type(item.default, item.types)

    def test_no_required_input_has_a_default(self, kind: ToolKind) -> None:
        assert not [item.name for item in kind.inputs if item.required and item.default is not None]

    def test_choices_are_texts_and_hold_the_default(self, kind: ToolKind) -> None:
        for item in kind.inputs:
            if item.choices:
                assert item.types == ("string",)
                assert item.default is None or item.default in item.choices

    def test_only_text_is_read_as_a_language(self, kind: ToolKind) -> None:
        assert all("string" in item.types for item in kind.inputs if item.language)

    def test_no_secret_may_flow_into_a_language(self, kind: ToolKind) -> None:
        assert not [item.name for item in kind.inputs if item.takes_secret and item.language]

    def test_alternatives_are_known_and_none_is_required_alone(self, kind: ToolKind) -> None:
        for choice in kind.choices:
            assert len(choice.names) > 1
            for name in choice.names:
                item = kind.input(name)
                assert kind.takes_auth if name == "auth" else item is not None and not item.required

    def test_hints_are_for_names_that_do_not_exist(self, kind: ToolKind) -> None:
        known = {item.name for item in items_of(kind)}
        assert not known & set(kind.instead)
        assert all(hint.startswith("write ") for hint in kind.instead.values())

    def test_helpers_are_known_under_outcome(self, kind: ToolKind) -> None:
        assert set(kind.helpers) <= given_fields("outcome")

    def test_result_names_its_fields(self, kind: ToolKind) -> None:
        assert all(name in kind.result for name in kind.result_fields)

    def test_example_is_a_task_that_uses_what_is_declared(self, kind: ToolKind) -> None:
        task = yaml.safe_load(kind.example)
        assert task.pop("kind") == kind.name
        assert {item.name for item in kind.inputs if item.required} <= set(task)
        assert kind.takes_auth or "auth" not in task
        for name in set(task) - STRUCTURAL:
            item = kind.input(name)
            assert item is not None, name
            assert has_type(task[name], item.types)


def test_every_helper_of_an_outcome_belongs_to_one_kind() -> None:
    helpers = [helper for kind in KINDS for helper in kind.helpers]
    assert sorted(helpers) == ["http", "pg", "py"]


def test_inputs_and_settings_are_found_by_name() -> None:
    http = builtin_kinds()["http"]
    url, timeout = http.input("url"), http.setting("timeout")
    assert url is not None
    assert url.language == "url"
    assert timeout is not None
    assert timeout.default == {"connect": 10, "read": 60}
    assert http.input("timeout") is None
    assert http.setting("url") is None
