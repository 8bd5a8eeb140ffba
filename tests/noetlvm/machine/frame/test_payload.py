"""What is too large for an event goes elsewhere and comes back unchanged (S46)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetlvm.data.encoding import UnencodableError, decode, encode
from noetlvm.data.references import Reference, ReferringList, ReferringMap
from noetlvm.expr.errors import ErrorKind, ExpressionError
from noetlvm.expr.values import Undefined
from noetlvm.limits import CTX_BYTES_MAX, EVENT_BYTES_MAX, INLINE_BYTES, INLINE_BYTES_MIN, LOADED_BYTES, Limits
from noetlvm.machine import payload
from noetlvm.machine.frame import Frame
from noetlvm.machine.payload import CtxSize, Offload, TooLargeError, rough_bytes, schema_hint
from noetlvm.machine.state import FrameState
from tests.noetlvm.machine.frame.pipelines import drive, error, ok, pipeline_of, program_of, rules, run, scope

BIG = "x" * (INLINE_BYTES + 1)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(allow_nan=False),
    st.text(),
)
KEYS = st.one_of(st.text(), st.integers(-5, 5), st.tuples(st.integers()))
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner), max_leaves=20
)


class Store:
    """A result store in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.reads = 0

    def fetch(self, reference: Reference) -> bytes:
        self.reads += 1
        return self.blobs[reference.key]

    def take(self, offload: Offload) -> None:
        self.blobs |= dict(offload.take_blobs())


def stored(value: Any, store: Store) -> Any:
    """Return a value as an event carries it, its blobs written."""
    offload = Offload()
    small = offload.shrink(value)
    store.take(offload)
    return small


# ---- encoding


@given(DATA)
def test_data_comes_back_as_it_was(value: Any) -> None:
    again = decode(encode(value))
    assert again == value
    assert repr(again) == repr(value)


@pytest.mark.parametrize("value", [object(), {1, 2}, Undefined("x"), "\ud800", {"a": [object()]}, len])
def test_what_is_no_data_is_refused(value: Any) -> None:
    with pytest.raises(UnencodableError):
        encode(value)


def test_bottomless_data_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UnencodableError):
        encode(endless)


def test_a_reference_is_described_completely() -> None:
    reference = Offload().shrink(BIG)
    assert decode(encode({"a": reference})) == {"a": reference}
    reported = reference.to_data()
    assert set(reported) == {"store", "key", "checksum", "size", "schema_hint"}
    assert reported["checksum"] == "sha256:" + reported["key"]
    assert reported["size"] == len(encode(BIG))
    assert reported["schema_hint"] == f"text of {len(BIG)}"


# ---- shrinking


def test_small_values_stay_and_large_ones_go() -> None:
    offload = Offload()
    at_limit = "x" * (INLINE_BYTES - 5)
    assert len(encode(at_limit)) <= INLINE_BYTES
    assert offload.shrink(at_limit) == at_limit
    assert offload.take_blobs() == []
    assert type(offload.shrink(BIG)) is Reference
    assert [len(data) for _, data in offload.take_blobs()] == [len(encode(BIG))]
    assert offload.take_blobs() == []


def test_equal_values_have_one_key() -> None:
    one, other = Offload().shrink([BIG, 1]), Offload().shrink([BIG, 1])
    assert one == other
    assert Offload().shrink([BIG, 2]) != one


def test_a_mapping_fits_with_its_largest_values_elsewhere() -> None:
    offload = Offload()
    given = {"a": "a" * 40_000, "b": "b" * 50_000, "c": 1}
    small = offload.fit(given)
    assert type(small["b"]) is Reference
    assert (small["a"], small["c"]) == (given["a"], 1)
    assert len(encode(small)) <= INLINE_BYTES


def test_a_mapping_may_be_as_large_as_its_limit_and_no_larger() -> None:
    given = {"a": "a" * 500, "b": "b" * 400, "c": "c" * 100}
    a, b = (Offload().store(given[name]) for name in "ab")
    one, two = given | {"a": a}, given | {"a": a, "b": b}
    for fitting, limit in ((given, len(encode(given))), (one, len(encode(one))), (two, len(encode(two)))):
        offload = Offload(10_000)
        assert offload.fit(given, limit) == fitting
        assert offload.fit(given, limit + 1) == fitting
    for fitting, limit in ((one, len(encode(given)) - 1), (two, len(encode(one)) - 1)):
        assert Offload(10_000).fit(given, limit) == fitting
    most = len(encode(two))
    with pytest.raises(TooLargeError, match=f"^{most:,} bytes, where {most - 1:,} may be, with 3 keys$"):
        Offload(10_000).fit(given, most - 1)


def test_many_short_values_under_long_names_are_large_together() -> None:
    given = {f"{number:01000}": "x" * 1_000 for number in range(50)}
    assert len(encode(Offload().fit(given))) <= INLINE_BYTES


def test_a_value_may_be_as_large_as_the_limit() -> None:
    value = ["x" * 50]
    assert Offload(len(encode(value))).shrink(value) is value
    assert type(Offload(len(encode(value)) - 1).shrink(value)) is Reference


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ({str(number): 0 for number in range(6)}, "mapping of 0, 1, 2, 3, 4, 5"),
        ({str(number): 0 for number in range(7)}, "mapping of 0, 1, 2, 3, 4, 5, …"),
        ({"x" * 100: 0}, "mapping of " + "x" * 69),
        ([1, 2], "list of 2"),
        ((1, 2, 3), "list of 3"),
        ("four", "text of 4"),
        (5, "a whole number"),
    ],
)
def test_a_hint_describes_a_value(value: Any, hint: str) -> None:
    assert schema_hint(value) == hint


@pytest.mark.parametrize("value", [None, True, 1.5, 0, 1_000, -1_000, 2**63 - 1, -(2**63)])
def test_a_number_counts_as_the_longest_does(value: Any) -> None:
    assert rough_bytes(value) == 9


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, [1, 2], {"a": 1}, 3**62])
def test_anything_else_counts_as_it_is_encoded(value: Any) -> None:
    assert rough_bytes(value) == len(encode(value))


def test_a_mapping_of_too_many_keys_cannot_fit() -> None:
    with pytest.raises(TooLargeError, match="20,000 keys"):
        Offload().fit({f"key_{number}": number for number in range(20_000)})


def test_ctx_has_a_limit() -> None:
    rest = CTX_BYTES_MAX - len(encode({"a": "x" * CTX_BYTES_MAX, "b": 1, "c": 1})) + CTX_BYTES_MAX
    size = CtxSize({"a": 1, "b": 1})
    size.write({"a": "x" * (rest - 4), "c": 1})
    with pytest.raises(TooLargeError):
        size.check({"d": 1})
    with pytest.raises(TooLargeError):
        CtxSize({}).check({"a": "x" * (rest + 1), "b": 1, "c": 1})


def test_what_is_overwritten_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "CTX_BYTES_MAX", vars(CtxSize({"a": "x" * 50, "b": "y" * 20}))["_total"])
    size = CtxSize({"a": "x" * 50})
    size.check({"b": "y" * 20})
    with pytest.raises(TooLargeError):
        size.check({"b": "y" * 21})
    size.check({"a": "y" * 50, "b": "y" * 20})
    size.write({"a": "z" * 20, "b": "y" * 20})
    size.check({"a": "x" * 50})
    for patch in ({"a": "x" * 51}, {"a": "x" * 50, "b": "y" * 21}, {"a": "x" * 50, "c": 1}):
        with pytest.raises(TooLargeError):
            size.check(patch)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), SCALARS, max_size=3), max_size=4))
def test_the_size_of_ctx_is_that_of_all_that_was_written(patches: list[dict[str, Any]]) -> None:
    size, ctx = CtxSize({}), dict[str, Any]()
    for patch in patches:
        size.write(patch)
        ctx |= patch
    assert vars(size) == vars(CtxSize(ctx))


def test_a_playbook_may_lower_the_payload_limit_but_not_raise_it() -> None:
    def limits(value: Any) -> Limits:
        return Limits.of({"spec": {"policy": {"limits": {"max_payload_bytes": value}}}})

    assert limits(10_000).max_payload_bytes == 10_000
    assert limits(1).max_payload_bytes == INLINE_BYTES_MIN
    assert limits(10**9).max_payload_bytes == INLINE_BYTES
    assert limits("many").max_payload_bytes == INLINE_BYTES
    assert Limits.of({}) == Limits()


def test_secrets_are_taken_out_before_anything_is_stored() -> None:
    offload = Offload(redact=lambda value: decode(encode(value).replace(b"hunter2", b"*******")))
    assert offload.shrink("hunter2") == "*******"
    assert offload.fit({"a": ["hunter2"]}) == {"a": ["*******"]}
    offload.shrink(BIG + "hunter2")
    assert all(b"hunter2" not in data for _, data in offload.take_blobs())


# ---- reading back


def test_what_was_stored_is_read_back_once_and_cached() -> None:
    store = Store()
    reference = stored({"rows": [BIG]}, store)
    offload = Offload(fetch=store.fetch)
    assert offload.load(reference) == {"rows": [BIG]}
    assert offload.read(reference) is offload.load(reference)
    assert store.reads == 1
    assert offload.read(5) == 5


def test_what_waits_to_be_stored_can_be_read() -> None:
    offload = Offload()
    assert offload.load(offload.shrink(BIG)) == BIG


def test_handing_a_stored_value_on_stores_nothing() -> None:
    store = Store()
    reference = stored([BIG], store)
    offload = Offload(fetch=store.fetch)
    assert offload.shrink(offload.load(reference)) == reference
    assert offload.take_blobs() == []


def test_memory_for_values_that_were_read_is_bounded() -> None:
    store = Store()
    half = "x" * (LOADED_BYTES // 2)
    first, second, third = (stored(half + str(number), store) for number in range(3))
    offload = Offload(fetch=store.fetch)
    for reference in (first, second, third, first):
        offload.load(reference)
    assert store.reads == 4


def test_the_values_that_were_read_last_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    a, b, c = (stored(name * len(BIG), store) for name in "abc")
    monkeypatch.setattr(payload, "LOADED_BYTES", 2 * a.size)
    offload = Offload(fetch=store.fetch)
    values = {name: offload.load(reference) for name, reference in (("a", a), ("b", b), ("a", a))}
    assert store.reads == 2
    offload.load(c)
    for reference in (a, c, a, c):
        offload.load(reference)
    assert store.reads == 3
    assert offload.shrink(values["a"]) == a
    assert offload.take_blobs() == []
    assert offload.shrink(values["b"]) == b
    assert offload.take_blobs() != []


def test_one_value_stays_in_memory_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "LOADED_BYTES", 10)
    store = Store()
    a, b = (stored(name * len(BIG), store) for name in "ab")
    offload = Offload(fetch=store.fetch)
    for reference in (a, a, b, b, a):
        offload.load(reference)
    assert store.reads == 3


def test_a_value_that_was_stored_is_not_read_back() -> None:
    offload = Offload()
    reference = offload.shrink(BIG)
    offload.take_blobs()
    assert offload.load(reference) is BIG


def test_damaged_and_missing_results_are_errors_of_their_kind() -> None:
    store = Store()
    reference = stored(BIG, store)
    with pytest.raises(ExpressionError, match="cannot be read") as missing:
        Offload().load(reference)
    assert missing.value.kind is ErrorKind.STORED
    store.blobs[reference.key] += b"!"
    with pytest.raises(ExpressionError, match="checksum"):
        Offload(fetch=store.fetch).load(reference)


def test_values_that_refer_to_others_are_stored_and_read_through() -> None:
    store = Store()
    offload = Offload(fetch=store.fetch)
    results = [offload.shrink({"rows": [BIG, number]}) for number in range(3)]
    whole = offload.shrink(results)
    assert type(whole) is Reference
    store.take(offload)
    again = Offload(fetch=store.fetch)
    loaded = again.load(whole)
    assert type(loaded) is ReferringList
    assert store.reads == 1
    assert len(loaded) == 3
    assert loaded[2]["rows"][1] == 2
    assert store.reads == 2
    assert loaded[-1:][0]["rows"][1] == 2
    assert [item["rows"][1] for item in loaded] == [0, 1, 2]


def test_references_anywhere_in_data_can_be_made_readable() -> None:
    offload = Offload()
    answer = offload.readable({"status": "ok", "result": {"result": offload.shrink(BIG), "n": [offload.shrink([BIG])]}})
    assert type(answer["result"]) is ReferringMap
    assert answer["result"]["result"] == BIG
    assert answer["result"]["n"][0] == [BIG]


# ---- in a pipeline


def test_an_event_carries_references_and_the_pipeline_the_values() -> None:
    rule = 'else: { then: { do: continue, set_ctx: { page: "{{ outcome.result }}" } } }'
    show = "- show: { kind: python, code: '', args: { n: '{{ _prev|length }}', m: '{{ ctx.page|length }}' } }"
    ran = run(pipeline_of(rules(rule) + show), ok(BIG))
    data = ran.events[0].data
    assert type(data["outcome"]["result"]) is Reference
    assert type(data["ctx"]["page"]) is Reference
    assert ran.calls[1].inputs["args"] == {"n": len(BIG), "m": len(BIG)}


def test_the_result_of_a_pipeline_is_reported_by_reference() -> None:
    ran = run(pipeline_of("- { kind: noop }"), ok(BIG))
    reported = ran.events[-1].data["result"]
    assert type(reported) is Reference
    assert ran.ended == ("done", reported, None)


def test_no_event_is_over_its_limit() -> None:
    part = "x" * (INLINE_BYTES - 100)
    rule = (
        "else: { then: { do: fail, "
        + ", ".join(
            f'{name}: {{ a: "{{{{ outcome.http }}}}", b: "{{{{ outcome.result }}}}", c: "{{{{ outcome.error }}}}" }}'
            for name in ("set_iter", "set_ctx")
        )
        + " } }"
    )
    outcome = error(result=part, http={"headers": part})
    outcome["error"] |= {"message": part, "details": part}
    code = pipeline_of(rules(rule, inputs="args: '{{ ctx.big }}'"), loop=True)
    ran = run(code, outcome, within=scope(loop=True, ctx={"big": {"a": part}}))
    assert ran.directives == ["fail"]
    assert set(ran.events[0].data) >= {"iter", "ctx", "inputs"}
    assert max(len(encode(event.data)) for event in ran.events) <= EVENT_BYTES_MAX


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("ctx.rows[1].n", 2),
        ("ctx.rows|length", 3),
        ("ctx['rows'][-1].n", 3),
        ("ctx.get('rows')[0].n", 1),
        ("rows|map(attribute='n')|list", [1, 2, 3]),
        ("ctx.values()|first|length", 3),
        ("ctx.rows == ctx.rows", True),
        ("(ctx|tojson)[:9]", '{"rows": '),
        ("[1, 2, 3] == ctx.rows|map(attribute='n')|list", True),
        ("ctx|length", 1),
        ("args.other.n", 1),
        ("fetch.n", 1),
        ("workload.deep.n", 1),
        ("_prev.n", 1),
        ("iter.seen.n", 1),
        ("ctx.copy().rows|length", 3),
        ("(ctx|string)|length > 65000", True),
    ],
)
def test_a_template_reads_through_references(template: str, value: Any) -> None:
    store = Store()
    rows = stored([{"n": number, "text": BIG if number == 1 else ""} for number in (1, 2, 3)], store)
    one = stored({"n": 1, "text": BIG}, store)
    saved = FrameState()
    saved.prev, saved.iter = one, {"seen": one}
    around = scope(
        loop=True,
        offload=Offload(fetch=store.fetch),
        ctx={"rows": rows},
        args={"other": one},
        results={"fetch": one},
        workload=stored({"deep": {"n": 1}, "text": BIG}, store),
    )
    tasks = f"- show: {{ kind: python, code: '', args: {{ value: \"{{{{ {template} }}}}\" }} }}"
    for checked in (False, True):
        ran = drive(Frame(allowing(tasks, checked), around, saved), iter(()))
        assert ran.calls, ran.error
        assert ran.calls[0].inputs["args"] == {"value": value}


def allowing(tasks: str, checked: bool) -> Any:
    """Return a pipeline whose names lint cannot know: the step `fetch` and what others wrote."""
    text = (
        "workload: { items: [1], deep: { n: 0 } }\nworkflow:\n"
        "  - step: fetch\n    tool: { kind: noop }\n    next: { arcs: [ { step: start } ] }\n"
        '  - step: start\n    loop: { in: "{{ workload.items }}", iterator: item }\n    tool:\n'
    )
    text += "".join(f"      {line}\n" for line in tasks.splitlines())
    return program_of(text, checked=checked).main.steps["start"].pipeline


def test_a_reference_that_cannot_be_read_is_a_template_error() -> None:
    reference = Offload().shrink(BIG)
    code = pipeline_of("- show: { kind: python, code: '', args: { value: '{{ ctx.rows }}' } }")
    ran = run(code, within=scope(ctx={"rows": reference}))
    assert ran.error["kind"] == "template"
    assert reference.key in ran.error["message"]


def test_writing_ctx_leaves_references_unread() -> None:
    store = Store()
    rule = "else: { then: { do: continue, set_ctx: { n: 1 } } }"
    show = "- show: { kind: python, code: '', args: { n: '{{ ctx.n }}' } }"
    around = scope(ctx={"rows": stored(BIG, store)}, offload=Offload(fetch=store.fetch))
    assert run(pipeline_of(rules(rule) + show), within=around).calls[1].inputs["args"] == {"n": 1}
    assert store.reads == 0


def test_an_outcome_that_cannot_be_recorded_keeps_the_part_that_rules_read() -> None:
    frame = Frame(pipeline_of("- { get: { kind: http, url: x } }"), scope(), FrameState())
    frame.advance()
    frame.complete({"status": "ok", "result": object(), "http": {"status": 200}})
    assert (frame.outcome["error"]["kind"], frame.outcome["http"]["status"]) == ("encoding", 200)
