"""A mask is never taken for the secret it stands for: using it is an error (S64)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetlvm.data.encoding import MASK
from noetlvm.expr.values import Masked
from noetlvm.keychain.redaction import Redactor
from noetlvm.machine.payload import Offload
from noetlvm.machine.scope import Scope, pipeline_names
from tests.commands import Command

SECRET = "c4n4ry/Zx9+Qw7Lm3Tp5"

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: keyed, path: keyed }}
keychain:
  - {{ name: token, kind: bearer_token }}
workflow:
  - step: start
    tool:
      - login:
          kind: shell
          command: [cat, "{file}"]
          spec:
            policy:
              rules:
                - else:
                    then:
                      do: continue
                      set_ctx:
                        tok: "{{{{ outcome.result.stdout }}}}"
                        n: 3
                        named: "{{{{ {{outcome.result.stdout: 1}} }}}}"
      - same_step:
          kind: shell
          command: [sh, -c, 'test "$0" = "{secret}"', "{{{{ ctx.tok }}}}"]
    next:
      arcs: [{{ step: use, args: {{ passed: "{{{{ ctx.tok }}}}", n: 4 }} }}]
  - step: use
    tool:
      - use: {{ kind: shell, command: [echo, "{used}"] }}
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TOKEN", SECRET)
    (tmp_path / "secret.txt").write_text(SECRET)

    def written(used: str) -> str:
        text = PLAYBOOK.format(file=tmp_path / "secret.txt", secret=SECRET, used=used)
        (tmp_path / "keyed.yaml").write_text(text)
        return "keyed.yaml"

    return written


@pytest.mark.parametrize(
    ("used", "named"),
    [
        ("{{ ctx.tok }}", "ctx.tok (a secret, which is not recorded: run the task `login` of the step `start` again)"),
        ("Bearer {{ ctx.tok }}", "ctx.tok (a secret"),
        ("{{ args.passed }}", "args.passed (a secret, which is not recorded: run the step `start` again)"),
        ("{{ ctx | tojson }}", "(a secret"),
        ("{{ ctx.tok | default('anonymous') }}", "ctx.tok (a secret"),
        ("{{ ctx.tok or 'anonymous' }}", "ctx.tok (a secret"),
        ("{{ ctx.tok | length }}", "ctx.tok (a secret"),
        ("{{ 'yes' if ctx.tok == 'x' else 'no' }}", "ctx.tok (a secret"),
        ("{{ ctx.tok is string }}", "ctx.tok (a secret"),
        ("{{ ctx.tok.upper() }}", "ctx.tok (a secret"),
        ("{{ ctx.named | list | first }}", "ctx.named (a secret"),
    ],
)
def test_a_later_step_that_uses_a_masked_value_fails_and_says_what_to_do(
    noetlvm: Command, write: Any, used: str, named: str
) -> None:
    answer = noetlvm("run", write(used))
    assert answer.code == 1
    assert named in " ".join((answer.out + answer.err).split())


def test_a_later_step_may_use_what_is_not_masked(noetlvm: Command, write: Any) -> None:
    assert noetlvm("run", write("{{ ctx.n + args.n }}")).code == 0


@pytest.mark.parametrize(
    ("guard", "is_masked"),
    [
        ("{{ ctx.tok == '***' }}", True),
        ("{{ ctx.tok | length == 3 }}", True),
        ("{{ event.result.stdout | upper == 'X' }}", True),
        ("{{ ctx.n == 3 }}", False),
    ],
)
@pytest.mark.parametrize("place", ["guard", "gate"])
def test_a_condition_on_a_masked_value_fails(
    noetlvm: Command, tmp_path: Path, write: Any, guard: str, is_masked: bool, place: str
) -> None:
    written = tmp_path / write("x")
    login, same_step, rest = written.read_text().partition("      - same_step:")
    arc = "arcs: [{ step: use, "
    text = login + rest[rest.index("    next:") :]
    if place == "guard":
        text = text.replace(arc, f'{arc}when: "{guard}", ')
    else:
        gate = f'spec: {{ policy: {{ admit: {{ rules: [{{ when: "{guard}", then: {{ allow: true }} }}] }} }} }}'
        text = text.replace("  - step: use\n", f"  - step: use\n    {gate}\n")
    written.write_text(text)
    answer = noetlvm("run", "keyed.yaml", "--db", "runs.db")
    assert answer.code == (1 if is_masked else 0), same_step
    said = " ".join((answer.out + answer.err).split())
    assert ("a secret, which is not recorded" in said) is is_masked
    assert noetlvm("replay", said.partition("(execution ")[2].partition(")")[0], "--db", "runs.db").code == 0


LOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: looped, path: looped }}
keychain: [{{ name: token, kind: bearer_token }}]
workflow:
  - step: start
    loop: {{ in: [1, 2], iterator: n }}
    tool:
      - read: {{ kind: shell, command: [awk, 'BEGIN {{ while (n++ < 20000) print n }} 1', "{file}"] }}
    next: {{ arcs: [{{ step: use }}] }}
  - step: use
    tool:
      - use: {{ kind: python, args: {{ v: "{used}" }}, code: "result = str(v)[-80:]" }}
"""


@pytest.mark.parametrize(
    "used", ["{{ start }}", "{{ start[1].stdout }}", "{{ start | map(attribute='stdout') | list }}"]
)
def test_a_masked_part_of_stored_results_of_a_loop_cannot_be_used(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: str
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "looped.yaml").write_text(LOOP.format(file=tmp_path / "secret.txt", used=used))
    answer = noetlvm("run", "looped.yaml")
    assert answer.code == 1, answer.out
    assert "(a secret, which is not recorded: run the step `start` again)" in " ".join(
        (answer.out + answer.err).split()
    )


FAMILY = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: parent, path: parent }
keychain: [{ name: token, kind: bearer_token }]
workflow:
  - step: start
    tool:
      - child: { kind: playbook, path: child, workload: { t: "{{ keychain.token }}" } }
---
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: child }
workload: { t: "" }
workflow:
  - step: start
    tool:
      - use: { kind: shell, command: [echo, "{{ workload.t }}"] }
"""


def test_a_child_that_uses_a_secret_of_its_request_fails_and_names_it(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    for name, text in zip(("parent", "child"), FAMILY.split("---\n"), strict=True):
        (tmp_path / f"{name}.yaml").write_text(text)
    answer = noetlvm("run", "parent.yaml", "child.yaml")
    assert answer.code == 1
    assert "workload.t (a secret, which is not recorded: start the execution again)" in " ".join(
        (answer.out + answer.err).split()
    )


PARENT_OF_READER = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: parent, path: parent }}
keychain: [{{ name: token, kind: bearer_token }}]
workflow:
  - step: start
    tool:
      - child: {{ kind: playbook, path: child }}
      - use: {{ kind: shell, command: [echo, "{used}"] }}
---
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: child, path: child }}
workflow:
  - step: start
    tool:
      - read: {{ kind: shell, command: [{read}, "{file}"] }}
"""


@pytest.mark.parametrize("read", ["cat", "awk, 'BEGIN { while (n++ < 9000) print n } 1'"])
@pytest.mark.parametrize(
    ("used", "is_masked"),
    [
        ("{{ _prev.result.stdout }}", True),
        ("{{ child.result.stdout | length }}", True),
        ("{{ _prev | tojson }}", True),
        ("{{ _prev.result.stdout | default('') }}", True),
        ("{{ _prev.status }} {{ child.result.exit_code }}", False),
    ],
)
def test_a_task_that_uses_a_masked_result_of_a_child_fails(
    noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str, used: str, is_masked: bool
) -> None:
    """The child has the secret from elsewhere, and its log has the mask, inline or in a stored result."""
    monkeypatch.setenv("TOKEN", SECRET)
    (tmp_path / "secret.txt").write_text(SECRET)
    text = PARENT_OF_READER.format(used=used, read=read, file=tmp_path / "secret.txt")
    for name, part in zip(("parent", "child"), text.split("---\n"), strict=True):
        (tmp_path / f"{name}.yaml").write_text(part)
    answer = noetlvm("run", "parent.yaml", "child.yaml", "--db", "runs.db")
    assert answer.code == (1 if is_masked else 0)
    said = " ".join((answer.out + answer.err).split())
    assert ("(a secret, which is not recorded: run the task `child` again)" in said) is is_masked
    assert noetlvm("replay", said.partition("(execution ")[2].partition(")")[0], "--db", "runs.db").code == 0


def names(redacts: bool, **scope: Any) -> dict[str, Any]:
    offload = Offload(64 * 1024, redact=Redactor([SECRET]).redact if redacts else None)
    written = scope.pop("written", {})
    return pipeline_names(Scope(offload, "e", 1, **scope), None, written)


def test_masks_cannot_be_read_in_any_namespace() -> None:
    found = names(
        True,
        workload={"t": MASK},
        ctx={"a": {"b": [1, f"Bearer {MASK}"]}},
        args={"t": MASK, "n": 1},
        iter={"item": MASK, "index": 0},
        written={"tok": MASK},
        results={"login": {"token": MASK}},
    )
    masked = [
        found["workload"]["t"],
        found["ctx"]["a"]["b"][1],
        found["args"]["t"],
        found["iter"]["item"],
        found["iter"]["tok"],
        found["steps"]("login")["token"],
    ]
    assert [type(value) for value in masked] == [Masked] * 6
    assert (found["args"]["n"], found["ctx"]["a"]["b"][0], found["iter"]["index"]) == (1, 1, 0)
    assert masked[1].name.startswith("ctx.a.b[1] (a secret")


def test_a_text_of_stars_is_a_text_where_there_are_no_secrets() -> None:
    assert names(False, ctx={"rating": MASK})["ctx"]["rating"] == MASK


@pytest.mark.parametrize("field", ["path: '{{ keychain.token }}'", "path: child, version: '{{ keychain.token }}'"])
def test_no_secret_names_a_child(noetlvm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    parent, child = FAMILY.split("---\n")
    (tmp_path / "parent.yaml").write_text(parent.replace("path: child", field, 1))
    (tmp_path / "child.yaml").write_text(child)
    answer = noetlvm("run", "parent.yaml", "child.yaml", "--db", "named.db")
    assert answer.code == 1
    assert "no secret may name a playbook" in " ".join((answer.out + answer.err).split())
    assert SECRET.encode() not in (tmp_path / "named.db").read_bytes()
    assert SECRET not in noetlvm("events", "--db", "named.db", "--json").out
