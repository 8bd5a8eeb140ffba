"""What expressions mean: undefined values, guards, data access, loops; each translated and interpreted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noetlvm.bytecode.isa import EXPRESSION
from noetlvm.data.references import Reference, ReferringList
from noetlvm.expr.errors import DEFAULT_BYTES, JSON_BYTES, MAX_INT_BITS, ErrorKind, ExpressionError, Fuel, InternalError
from noetlvm.expr.interpret import HANDLERS, compile_expression
from noetlvm.expr.operations import require_whole
from noetlvm.expr.text_filters import TEXT_FILTERS
from noetlvm.expr.translate import BRANCHES, translate
from noetlvm.expr.translate_instructions import STRAIGHT
from noetlvm.expr.values import Undefined, guard
from tests.noetlvm.expr.evaluation import code, run, value_of

SCOPE: dict[str, Any] = {
    "workload": {"a": 1, "w": "workload"},
    "ctx": {"rows": [{"id": 1}, {"id": 2}], "items": "data", "w": "ctx", "empty": []},
    "args": {"w": "args"},
    "iter": {"i": "iter", "w": "iter"},
    "steps": {"fetch": {"rows": 3}},
    "outcome": {"status": "error", "http": {"status": 500}},
}


def _never(reference: Reference) -> Any:
    raise AssertionError(f"{reference} was read")


def error_of(template: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        value_of(template, SCOPE)
    return caught.value


class TestUndefined:
    def test_reading_through_it_stays_undefined(self) -> None:
        assert isinstance(value_of("{{ ctx.no.such['thing'][0].at_all }}", SCOPE), Undefined)

    def test_default_applies_to_it(self) -> None:
        assert value_of("{{ ctx.no.such | default('d') }}", SCOPE) == "d"

    def test_it_is_false_in_a_guard(self) -> None:
        assert value_of("{{ ctx.no }}", SCOPE, guard=True) is False

    @pytest.mark.parametrize("other", ["none", "''", "0", "false", "[]"])
    def test_it_equals_no_value(self, other: str) -> None:
        assert value_of(f"{{{{ ctx.no == {other} }}}}", SCOPE) is False

    def test_it_equals_its_like(self) -> None:
        assert value_of("{{ ctx.no == ctx.nothing }}", SCOPE) is True

    def test_it_prints_as_nothing(self) -> None:
        assert value_of("<{{ ctx.no }}>", SCOPE) == "<>"

    def test_where_it_is_required_it_is_an_error_that_names_the_field(self) -> None:
        expression = code(("NAME", "ctx"), ("ATTR", "no"), ("REQUIRE", "params.page"), ("RETURN",))
        with pytest.raises(ExpressionError, match=r"`no` is undefined in `params\.page`") as caught:
            run(expression, SCOPE)
        assert (caught.value.kind, caught.value.at) == (ErrorKind.UNDEFINED, 2)

    @pytest.mark.parametrize(
        "made",
        [
            [("NAME", "ctx"), ("ATTR", "no"), ("LIST", 1)],
            [("CONST", "key"), ("NAME", "ctx"), ("ATTR", "no"), ("MAP", 1)],
            [("NAME", "ctx"), ("ATTR", "no"), ("CONST", 1), ("MAP", 1)],
            [("CONST", 1), ("NAME", "ctx"), ("ATTR", "no"), ("TUPLE", 2), ("LIST", 1)],
            # `[ctx.no] or ctx.w`: what is required comes from either side.
            [("NAME", "ctx"), ("ATTR", "no"), ("LIST", 1), ("KEEP_IF", 6), ("NAME", "ctx"), ("ATTR", "w")],
        ],
    )
    def test_where_it_is_required_it_may_not_stand_in_what_was_made_either(self, made: list[tuple[Any, ...]]) -> None:
        expression = code(*made, ("REQUIRE", "params"), ("RETURN",))
        with pytest.raises(ExpressionError, match=r"`no` is undefined in `params`") as caught:
            run(expression, SCOPE)
        assert (caught.value.kind, caught.value.at) == (ErrorKind.UNDEFINED, len(made))

    def test_looking_for_it_reads_nothing_that_is_stored_elsewhere(self) -> None:
        stored = ReferringList([Reference("results", "0" * 64, 1, "text of 1")], _never)
        made = [{"a": stored}]
        assert require_whole(made, "params") is made

    def test_looking_for_it_looks_at_shared_parts_once(self) -> None:
        shared: Any = []
        for _ in range(200):
            shared = [shared, shared]
        assert require_whole(shared, "params") is shared

    @pytest.mark.parametrize(
        "template", ["{{ ctx.no + 1 }}", "{{ -ctx.no }}", "{{ ctx.no < 1 }}", "{{ ctx.no.upper() }}"]
    )
    def test_computing_with_it_is_an_error(self, template: str) -> None:
        assert error_of(template).kind is ErrorKind.UNDEFINED


class TestKeys:
    """What leaves an expression is JSON: its keys are text."""

    @pytest.mark.parametrize(
        ("made", "message"),
        [
            (
                [("CONST", 1), ("CONST", 2), ("TUPLE", 2), ("CONST", 3), ("MAP", 1)],
                "a tuple as a key, and keys are text",
            ),
            ([("CONST", 1), ("CONST", 2), ("MAP", 1)], "the key 1, and keys are text; write `'1'`"),
            ([("CONST", None), ("CONST", 2), ("MAP", 1)], "the key None, and keys are text"),
            ([("CONST", "a"), ("CONST", True), ("CONST", 2), ("MAP", 1), ("MAP", 1), ("LIST", 1)], "the key True"),
        ],
    )
    def test_a_key_that_is_no_text_is_refused_with_its_place(self, made: list[tuple[Any, ...]], message: str) -> None:
        with pytest.raises(ExpressionError) as caught:
            run(code(*made, ("REQUIRE", "set_ctx.v"), ("RETURN",)))
        assert caught.value.message.startswith("`set_ctx.v` has a mapping with ")
        assert message in caught.value.message
        assert (caught.value.kind, caught.value.at) == (ErrorKind.TYPE, len(made))

    def test_inside_an_expression_any_key_will_do(self) -> None:
        assert value_of("{{ {1: 'a', '1': 'b'}[1] }}", SCOPE) == "a"


class TestGuards:
    @pytest.mark.parametrize(
        ("value", "truth"),
        [
            ("true", True),
            (" FALSE\n", False),
            ("False", False),
            ("", False),
            ("no", True),
            ("falsely", True),
            (0, False),
        ],
    )
    def test_text_that_reads_as_a_boolean_is_one(self, value: object, truth: bool) -> None:
        assert guard(value) is truth

    def test_a_compiled_guard_is_a_boolean(self) -> None:
        assert value_of("{{ outcome.status }}", SCOPE, guard=True) is True
        assert value_of("{{ 'fal' ~ 'se' }}", SCOPE, guard=True) is False


class TestNames:
    @pytest.mark.parametrize(
        ("name", "value"),
        [("w", "args"), ("rows", [{"id": 1}, {"id": 2}]), ("i", "iter"), ("a", 1), ("fetch", {"rows": 3})],
    )
    def test_a_bare_name_is_looked_up_in_order(self, name: str, value: object) -> None:
        assert value_of(f"{{{{ {name} }}}}", SCOPE) == value

    def test_results_of_steps_may_come_from_a_function(self) -> None:
        assert value_of("{{ fetch }}", {"steps": lambda name: f"result of {name}"}) == "result of fetch"

    def test_a_namespace_that_is_not_there_is_undefined(self) -> None:
        assert value_of("{{ event.name is undefined }}", SCOPE) is True


class TestData:
    def test_a_field_named_as_a_method_is_data(self) -> None:
        assert value_of("{{ ctx.items }}", SCOPE) == "data"

    def test_a_method_of_a_mapping_is_called_even_beside_such_a_field(self) -> None:
        assert value_of("{{ args.items() }}", SCOPE) == [("w", "args")]

    @pytest.mark.parametrize(
        "template", ["{{ 'a'.upper }}", "{{ [1].count }}", "{{ 5 .real }}", "{{ ctx.rows.append }}"]
    )
    def test_python_attributes_do_not_exist(self, template: str) -> None:
        assert isinstance(value_of(template, SCOPE), Undefined)

    @pytest.mark.parametrize("template", ["{{ ctx.rows['0'] }}", "{{ ctx.rows[99] }}", "{{ ctx[[1]] }}", "{{ 5[0] }}"])
    def test_an_element_that_is_not_there_is_undefined(self, template: str) -> None:
        assert isinstance(value_of(template, SCOPE), Undefined)

    def test_data_is_not_changed(self) -> None:
        before = repr(SCOPE)
        value_of("{% for r in ctx.rows if r.id > 1 %}{{ r }}{% endfor %}{{ ctx.rows + [1] }}", SCOPE)
        assert repr(SCOPE) == before

    def test_groups_have_named_halves(self) -> None:
        template = "{% for g in ctx.rows | groupby('id') %}{{ g.grouper }}:{{ g.list | length }};{% endfor %}"
        assert value_of(template, SCOPE) == "1:1;2:1;"


class TestForBlocks:
    def test_loop_counts_only_what_the_filter_lets_through(self) -> None:
        template = "{% for x in [1, 2, 3, 4] if x is even %}{{ loop.index }}/{{ loop.length }}={{ x }} {% endfor %}"
        assert value_of(template) == "1/2=2 2/2=4 "

    def test_loop_knows_its_neighbours(self) -> None:
        template = "{% for x in 'abc' %}{{ loop.previtem }}{{ x }}{{ loop.nextitem }}{{ loop.revindex }} {% endfor %}"
        assert value_of(template) == "ab3 abc2 bc1 "

    def test_else_is_for_an_empty_list(self) -> None:
        assert value_of("{% for x in ctx.empty %}{{ x }}{% else %}none{% endfor %}", SCOPE) == "none"

    def test_going_through_a_number_is_an_error(self) -> None:
        assert error_of("{% for x in 5 %}{{ x }}{% endfor %}").kind is ErrorKind.TYPE

    def test_taking_apart_needs_the_right_number(self) -> None:
        assert error_of("{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}").kind is ErrorKind.VALUE


class TestErrors:
    @pytest.mark.parametrize(
        ("template", "kind"),
        [
            ("{{ 1 / 0 }}", ErrorKind.VALUE),
            ("{{ 1 + 'a' }}", ErrorKind.TYPE),
            ("{{ 'a' | map('nonsense') | list }}", ErrorKind.VALUE),
            ("{{ 'abc'.index('z') }}", ErrorKind.VALUE),
            ("{{ 5 | join }}", ErrorKind.TYPE),
            ("{{ {[1]: 2} }}", ErrorKind.TYPE),
            ("{{ 'a' * 10 ** 12 }}", ErrorKind.SIZE),
            ("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}", ErrorKind.FUEL),
        ],
    )
    def test_each_has_its_kind(self, template: str, kind: ErrorKind) -> None:
        assert error_of(template).kind is kind

    def test_it_knows_its_instruction(self) -> None:
        error = error_of("{{ ctx.rows | length + (1 // (ctx.rows | length - 2)) }}")
        assert error.at is not None
        expression = code(("CONST", 1), ("CONST", 2), ("CONST", 0), ("FLOORDIV",), ("ADD",), ("RETURN",))
        with pytest.raises(ExpressionError) as caught:
            run(expression)
        assert caught.value.at == 3

    def test_a_message_speaks_of_values_not_of_python(self) -> None:
        assert error_of("{{ 1 + 'a' }}").message == "`+` is not defined for a whole number and text"


class TestLimits:
    def test_steps_are_counted_for_instructions_and_rounds(self) -> None:
        expression = code(("CONST", 1), ("RETURN",))
        assert run(expression, fuel=Fuel(2)) == 1
        with pytest.raises(ExpressionError, match="too many steps"):
            run(expression, fuel=Fuel(1))

    @pytest.mark.parametrize("length", [DEFAULT_BYTES - 100, DEFAULT_BYTES + 1])
    def test_text_is_made_up_to_the_limit(self, length: int) -> None:
        expression = code(("CONST", "a"), ("CONST", length), ("MUL",), ("RETURN",))
        if length < DEFAULT_BYTES:
            assert len(run(expression)) == length
            return
        with pytest.raises(ExpressionError) as caught:
            run(expression)
        assert caught.value.kind is ErrorKind.SIZE

    def test_a_table_of_400000_rows_becomes_json(self) -> None:
        rows = [{"id": number} for number in range(400_000)]
        fuel = Fuel()
        made = TEXT_FILTERS["tojson"](fuel, rows)
        assert json.loads(made) == rows
        assert 0 < JSON_BYTES - fuel.json - len(made) < 400_000 * 8  # what it paid is close to what it made
        assert fuel.bytes == Fuel().bytes

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), [{"a": -float("inf")}]])
    @pytest.mark.parametrize("indent", [None, 2])
    def test_what_is_no_number_of_json_is_an_error(self, value: Any, indent: int | None) -> None:
        with pytest.raises(ExpressionError, match="JSON has no number") as caught:
            TEXT_FILTERS["tojson"](Fuel(), value, indent)
        assert caught.value.kind is ErrorKind.VALUE

    def test_json_has_a_longest_length(self) -> None:
        table = ["x" * 1_000] * (JSON_BYTES // 1_000)
        assert TEXT_FILTERS["tojson"](Fuel(), table[: len(table) * 9 // 10]).count("x") > JSON_BYTES * 8 // 10
        with pytest.raises(ExpressionError) as caught:
            TEXT_FILTERS["tojson"](Fuel(), table)
        assert caught.value.kind is ErrorKind.SIZE

    def test_whole_numbers_have_a_longest_length(self) -> None:
        assert value_of(f"{{{{ 2 ** {MAX_INT_BITS - 1} }}}}") == 2 ** (MAX_INT_BITS - 1)
        assert error_of(f"{{{{ 2 ** {MAX_INT_BITS} }}}}").kind is ErrorKind.SIZE

    def test_branches_that_are_not_taken_make_nothing(self) -> None:
        assert value_of("{{ 1 if workload.a else 'a' * 10 ** 12 }}", SCOPE) == 1


class TestTranslation:
    def test_every_instruction_has_a_handler_and_a_writer(self) -> None:
        assert set(HANDLERS) == set(EXPRESSION)
        assert set(STRAIGHT) | set(BRANCHES) == set(EXPRESSION)
        assert not set(STRAIGHT) & set(BRANCHES)

    @pytest.mark.parametrize(
        "template",
        [
            "{{ outcome.status == 'error' and outcome.http.status in [429, 500] or not ctx.x }}",
            "{{ 1 < workload.a < 3 }}",
            "{{ 1 < workload.a <= ctx.b < ctx.c != 5 }}",
            "{{ (ctx.a if ctx.b else ctx.c) | default(ctx.d | default('x')) }}",
            "{% for a in ctx.rows if a.id %}{% if a.id > x %}{{ a }}{% elif x %}b{% endif %}{% else %}c{% endfor %}",
            "https://{{ workload.host }}/{{ ctx.page + 1 }}",
        ],
    )
    def test_what_the_compiler_makes_is_translated(self, template: str) -> None:
        from noetlc.codegen.expressions import lower_template
        from noetlc.syntax.template_parser import parse_template

        assert translate(lower_template(parse_template(template)).expression) is not None

    def test_code_without_structure_is_interpreted(self) -> None:
        expression = code(
            ("CONST", 1), ("JUMP_IF", 4), ("CONST", "no"), ("RETURN",), ("CONST", "yes"), ("RETURN",)
        )  # fmt: skip
        assert translate(expression) is None
        assert run(expression) == "yes"

    def test_a_variable_read_before_it_changes_keeps_its_value(self) -> None:
        expression = code(
            ("CONST", 1), ("STORE", 0), ("LOCAL", 0), ("CONST", 2), ("STORE", 0), ("LOCAL", 0), ("TUPLE", 2),
            ("RETURN",), slots=1,
        )  # fmt: skip
        assert run(expression) == (1, 2)

    def test_stack_juggling_keeps_order(self) -> None:
        expression = code(
            ("CONST", 1), ("CONST", 2), ("CONST", 3), ("ROT3",), ("SWAP",), ("DUP",), ("LIST", 4), ("RETURN",)
        )  # fmt: skip
        assert run(expression) == [3, 2, 1, 1]

    def test_nothing_of_a_bundle_becomes_source(self) -> None:
        expression = code(
            ("CONST", "__import__('os')"), ("BARE", "x); exit ("), ("ATTR", 'a", exit()'), ("LIST", 2), ("RETURN",)
        )  # fmt: skip
        value = run(expression)
        assert value[0] == "__import__('os')"
        assert isinstance(value[1], Undefined)


class TestCheckedMode:
    @pytest.mark.parametrize(
        "rows",
        [
            [("POP",), ("RETURN",)],
            [("CONST", 1), ("CONST", 2), ("RETURN",)],
            [("TEXT_BEGIN",), ("CONST", 1), ("RETURN",)],
            [("CONST", 1), ("EMIT",), ("RETURN",)],
            [("LOCAL", 0), ("RETURN",)],
            [("LOOP", 0), ("RETURN",)],
            [("CONST", [1]), ("ITER",), ("RETURN",)],
            [("CONST", 1), ("NEXT", 0), ("RETURN",)],
            [("JUMP", 9)],
            [("CONST", 1)],
            [("NAME", "nonsense"), ("RETURN",)],
            [("CONST", 1), ("CONST", 2), ("APPEND",), ("RETURN",)],
            [("CONST",), ("RETURN",)],
        ],
    )
    def test_what_the_verifier_must_not_let_through_is_an_internal_error(self, rows: list[tuple[Any, ...]]) -> None:
        with pytest.raises(InternalError):
            compile_expression(code(*rows), checked=True)({}, Fuel())
