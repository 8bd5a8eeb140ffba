"""Data flow: what is read and never written, written and never read, or written by several at once."""

from __future__ import annotations

import pytest

from noetlvm.nearest import Suggestions
from tests.noetlc.rules.lint_text import lint
from tests.noetlc.rules.marked_text import found_at_marks, task

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a/b}\n"


def parallel(then: str, more: str = "") -> str:
    return task(then, "noop", f"{{in: [1], iterator: item, spec: {{mode: parallel{more}}}}}")


def test_write_of_parallel_iterations_is_found_at_each_key() -> None:
    findings = found_at_marks(parallel("{do: continue, set_ctx: {«total: 1, «last: 2}}"), "P501")
    assert ["`ctx.total`" in finding.message for finding in findings] == [True, False]
    assert all(finding.related for finding in findings)


def test_write_in_a_sequential_loop_inside_a_parallel_one_is_found() -> None:
    loop = "{in: [1], iterator: x, spec: {mode: parallel}, loop: {in: [1], iterator: y}}"
    (finding,) = found_at_marks(task("{do: continue, set_ctx: {«total: 1}}", "noop", loop), "P501")
    assert "`ctx.total`" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        parallel("{do: continue, set_ctx: {total: 1}}", ", policy: {reducers: {total: sum}}"),
        parallel("{do: continue, set_iter: {total: 1}}"),
        task("{do: continue, set_ctx: {total: 1}}", "noop", "{in: [1], iterator: item}"),
        task("{do: continue, set_ctx: {total: 1}}", "noop"),
    ],
)
def test_write_that_cannot_clash_is_not_reported(text: str) -> None:
    assert lint(text, "P501") == []


def looped(*entries: str) -> str:
    return "- step: a\n  loop: {in: [1], iterator: item}\n  tool:\n" + "".join(f"    - {entry}\n" for entry in entries)


def sets(label: str, name: str, directive: str = "continue") -> str:
    then = f"{{do: {directive}, set_iter: {{{name}: 1}}}}"
    return f"{label}: {{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {then}}}}}]}}}}}}"


def reads(label: str, expression: str) -> str:
    return f"{label}: {{kind: python, code: pass, args: {{x: '{{{{ {expression} }}}}'}}}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (looped(reads("one", "iter.«page")), "no task of the step sets `iter.page`"),
        (looped(reads("one", "iter.«page + 1"), sets("two", "page")), "before any task has set it"),
        (looped(reads("one", "iter.«page"), sets("two", "page", "jump, to: one")), "not set yet on some path"),
        (
            looped("choose: [{when: '{{ iter.«page }}', then: []}]", sets("two", "page")),
            "before any task has set it",
        ),
        (
            looped(
                "choose: [{when: '{{ args.a }}', then: [{" + sets("one", "page") + "}]}]", reads("two", "iter.«page")
            ),
            "not set yet on some path",
        ),
    ],
)
def test_iter_read_too_early_is_found(text: str, message: str) -> None:
    (finding,) = found_at_marks(text, "P503")
    assert message in finding.message


@pytest.mark.parametrize(
    "text",
    [
        looped(sets("one", "page"), reads("two", "iter.page")),
        looped(reads("one", "iter.item.path ~ iter.index")),
        looped(reads("one", "iter.page | default(1)")),
        looped(reads("one", "iter[args.key]")),
        looped(reads("one", "1 if iter.page is defined else iter.page")),
        looped("while: {when: '{{ iter.more }}', do: [{" + sets("one", "more") + "}]}"),
        looped("until: {when: '{{ iter.done }}', do: [{" + sets("one", "done") + "}]}"),
        looped(reads("one", "iter.page"), "two: {kind: workbook, task: w}"),
        looped(
            "choose: [{when: '{{ iter.page is defined }}', then: [{" + reads("one", "iter.page") + "}]}]",
            sets("two", "page", "jump, to: task_1"),
        ),
    ],
)
def test_iter_that_is_set_or_cared_for_is_not_reported(text: str) -> None:
    assert lint(text, "P503") == []


def test_misspelt_iter_name_is_suggested() -> None:
    (finding,) = found_at_marks(looped(sets("one", "page"), reads("two", "iter.«pgae")), "P503")
    assert finding.help == "did you mean `page`?"


def whole(workflow: str, head: str = "") -> str:
    return f"{HEAD}{head}workflow:\n  - step: a\n    tool: {workflow}\n"


def test_workload_name_without_default_is_found_once() -> None:
    text = whole("{kind: python, code: pass, args: {a: '{{ workload.«size }}', b: '{{ workload.size }}'}}")
    (finding,) = found_at_marks(text, "P504")
    assert finding.help == "add `size:` under `workload:`"


def test_workload_name_that_is_misspelt_is_suggested() -> None:
    text = whole("{kind: python, code: pass, args: {a: '{{ workload.«sise }}'}}", "workload: {size: 1}\n")
    (finding,) = found_at_marks(text, "P504")
    assert finding.help == "did you mean `workload.size`?"


@pytest.mark.parametrize(
    "expression",
    ["workload.size", "workload.other | default(1)", "workload[args.key]", "workload | tojson", 'workload.get("x")'],
)
def test_workload_name_with_default_is_not_reported(expression: str) -> None:
    text = whole(f"{{kind: python, code: pass, args: {{a: '{{{{ {expression} }}}}'}}}}", "workload: {size: 1}\n")
    assert lint(text, "P504") == []


KEYCHAIN = "keychain:\n  - name: «pg\n    kind: postgres_credential\n"


def test_credential_that_nothing_names_is_found() -> None:
    (finding,) = found_at_marks(whole("{kind: noop}", KEYCHAIN), "P505")
    assert "`pg`" in finding.message


@pytest.mark.parametrize(
    "tool",
    [
        "{kind: postgres, auth: pg, command: SELECT 1}",
        "{kind: http, url: 'https://example.org', headers: {x: '{{ keychain.pg.token }}'}}",
        "{kind: http, url: 'https://example.org', headers: {x: \"{{ keychain['pg'] }}\"}}",
        "{kind: http, url: 'https://example.org', headers: {x: '{{ keychain[args.name] }}'}}",
        "{kind: postgres, auth: '{{ args.name }}', command: SELECT 1}",
        "{kind: postgres, command: SELECT 1, spec: {auth: pg}}",
        "{kind: http, url: 'https://example.org', auth: {pg: {type: bearer}}}",
        "{kind: duckdb, command: SELECT 1, attach: {shop: {auth: pg}}}",
    ],
)
def test_credential_that_is_or_may_be_used_is_not_reported(tool: str) -> None:
    assert lint(whole(tool, KEYCHAIN.replace("«", "")), "P505") == []


def test_ctx_name_that_nobody_writes_is_found_once() -> None:
    text = whole("{kind: python, code: pass, args: {a: '{{ ctx.«size }}', b: '{{ ctx.size }}'}}")
    (finding,) = found_at_marks(text, "P506")
    assert "no task writes `ctx.size`" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        task("{do: continue, set_ctx: {size: '{{ ctx.size | default(0) + 1 }}'}}", "noop"),
        task("{do: continue, set_ctx: {a: '{{ ctx[args.key] }}'}}", "noop"),
        task("{do: '{{ ctx.size }}', set_ctx: [size]}", "noop"),
    ],
)
def test_ctx_name_that_is_or_may_be_written_is_not_reported(text: str) -> None:
    assert lint(text, "P506") == []


def test_ctx_written_by_a_workbook_task_counts() -> None:
    head = (
        "workbook:\n  tasks:\n    w:\n      kind: noop\n"
        "      spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {size: 1}}}}]}}\n"
    )
    tool = "[{kind: workbook, task: w}, {kind: python, code: pass, args: {a: '{{ ctx.size }}'}}]"
    assert lint(whole(tool, head), "P506") == []


def test_names_of_declared_credentials_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of them that would take minutes."""
    compared: list[str] = []
    monkeypatch.setattr(Suggestions, "nearest", lambda _self, name, _known: compared.append(name) or "")
    tool = "[{a: {kind: noop, v: '{{ keychain.one }} {{ keychain.two }} {{ keychain.tow }}'}}]"
    keychain = "keychain: [{name: one, kind: secret_manager}, {name: two, kind: secret_manager}]\n"
    lint(whole(tool, keychain), "P505")
    assert set(compared) == {"tow"}
