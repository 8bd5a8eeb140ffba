"""What an editor with the schema offers, shows and reports.

A walk over the schema always answers. With `YAML_LANGUAGE_SERVER=…/node_modules/.bin/yaml-language-server`, a program
that only npm has, the same questions go to that too (docs/decisions.md has the last result).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.noetlc.editor.editors import Editor, SchemaWalk, language_server

PROGRAM = os.environ.get("YAML_LANGUAGE_SERVER")

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: a\n  path: a\n"
STEP = f"{HEAD}workflow:\n  - step: start\n"
TASK = f"{STEP}    tool:\n      kind: %s\n"


@pytest.fixture(scope="module", params=["walk", *(["yaml-language-server"] if PROGRAM else [])])
def editor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    if request.param == "walk" or PROGRAM is None:
        yield SchemaWalk()
        return
    with language_server(PROGRAM, tmp_path_factory.mktemp("schema")) as server:
        yield server


OFFERED = {
    "keys of a playbook": (f"{HEAD}‸", {"workload", "workflow", "keychain", "workbook", "executor"}),
    "keys of a step": (f"{STEP}    ‸", {"tool", "loop", "next", "spec", "desc"}),
    "keys of a loop": (f"{STEP}    loop:\n      ‸", {"in", "iterator", "spec"}),
    "kinds of a tool": (f"{STEP}    tool:\n      kind: ‸", {"http", "postgres", "duckdb", "nats", "python", "shell"}),
    "inputs of http": (TASK % "http" + "      ‸", {"url", "method", "headers", "json", "body", "auth", "spec"}),
    "other names of inputs": (TASK % "http" + "      ‸", {"endpoint", "payload", "verify_ssl"}),
    "inputs of postgres": (TASK % "postgres" + "      ‸", {"command", "params", "rows", "script", "auth"}),
    "inputs of python": (TASK % "python" + "      ‸", {"code", "script", "args", "libs"}),
    "inputs of nats": (TASK % "nats" + "      ‸", {"operation", "subject", "bucket", "key"}),
    "settings of http": (
        TASK % "http" + "      url: x\n      spec:\n        ‸",
        {"timeout", "follow_redirects", "verify_tls", "policy"},
    ),
    "settings of python": (TASK % "python" + "      spec:\n        ‸", {"timeout", "memory_mb"}),
    "methods of http": (TASK % "http" + "      method: ‸", {"GET", "POST", "DELETE"}),
    "operations of nats": (TASK % "nats" + "      operation: ‸", {"publish", "request", "kv_put", "object_get"}),
    "modes of a router": (f"{STEP}    next:\n      spec:\n        mode: ‸", {"exclusive", "inclusive"}),
    "keys of an arc": (f"{STEP}    next:\n      arcs:\n        - step: end\n          ‸", {"when", "args"}),
    "what a rule does": (
        TASK % "noop" + "      spec:\n        policy:\n          rules:\n            - else:\n                then:\n"
        "                  do: ‸",
        {"continue", "retry", "jump", "skip", "break", "fail"},
    ),
    "kinds of secrets": (
        f"{HEAD}keychain:\n  - name: k\n    kind: ‸",
        {"secret_manager", "bearer_token", "postgres_credential", "environment", "file"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), OFFERED.values(), ids=OFFERED)
def test_an_editor_offers_what_can_be_written(editor: Editor, text: str, expected: set[str]) -> None:
    assert expected <= editor.offers(text)


def test_an_editor_does_not_offer_inputs_of_another_kind(editor: Editor) -> None:
    offered = editor.offers(TASK % "python" + "      ‸")
    assert not {"url", "command", "bucket"} & offered


SHOWN = {
    "a key of a step": (f"{STEP}    ‸loop: {{in: [1], iterator: n}}\n", "once for each element"),
    "an input": (TASK % "http" + "      ‸url: x\n", "Address of the request"),
    "another name of an input": (TASK % "http" + "      ‸endpoint: x\n", "Address of the request"),
    "a setting": (TASK % "python" + "      code: x\n      spec:\n        ‸memory_mb: 64\n", "Memory"),
    "an arc's guard": (
        f"{STEP}    next:\n      arcs:\n        - step: end\n          ‸when: x\n",
        "a template that gives true or false",
    ),
}


@pytest.mark.parametrize(("text", "expected"), SHOWN.values(), ids=SHOWN)
def test_an_editor_shows_a_text_for_a_key(editor: Editor, text: str, expected: str) -> None:
    assert expected.lower() in editor.shows(text).lower()


@pytest.mark.parametrize(
    "text",
    [
        TASK % "http" + "      url: https://example.com\n      spec: {timeout: 5}\n",
        TASK % "postgres" + '      auth: "{{ workload.db }}"\n      query: SELECT 1\n',
        f"{STEP}    tool:\n      - get: {{kind: http, url: x}}\n      - {{name: b, kind: noop}}\n",
        f"{STEP}    next: {{arcs: [{{step: end}}]}}\n  - step: end\n    tool: {{kind: noop}}\n",
        TASK % "http" + "      url: x\n      method: post\n",
        f"{HEAD}executor: {{kind: noetl_runtime, requires: {{tools: [http]}}}}\nworkflow: []\n",
    ],
)
def test_an_editor_reports_nothing_of_a_right_playbook(editor: Editor, text: str) -> None:
    assert editor.complaints(text) == 0


@pytest.mark.parametrize(
    "text",
    [
        TASK % "htpt",
        TASK % "http" + "      url: 3\n",
        TASK % "http" + "      method: GET\n",
        TASK % "http" + "      url: x\n      method: FETCH\n",
        f"{STEP}    loops: 3\n",
        f"{STEP}    next: {{spec: {{mode: all}}, arcs: []}}\n",
        HEAD.replace("Playbook", "Playbok") + "workflow: []\n",
    ],
)
def test_an_editor_reports_a_mistake(editor: Editor, text: str) -> None:
    assert editor.complaints(text) > 0
