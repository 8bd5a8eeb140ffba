"""Safety: where secrets may flow, where data may not be spliced, what must not be written down."""

from __future__ import annotations

import pytest

from noetlc.finding import Severity
from noetlc.rules.catalogue import whole_playbook
from tests.noetlc.rules.lint_text import fixed, lint, place

_HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: safe, path: tests/safe}
keychain:
  - {name: api, kind: secret_manager}
workload: {host: example.com, n: 1}
workflow:
  - step: start
    tool:
"""


def patch(expression: str, name: str = "set_ctx") -> str:
    """A task whose policy writes one value."""
    return _HEAD + (
        "      - keep:\n"
        "          kind: noop\n"
        "          spec:\n"
        "            policy:\n"
        "              rules:\n"
        "                - else:\n"
        "                    then:\n"
        "                      do: continue\n"
        f"                      {name}:\n"
        f"                        x: {expression}\n"
    )


def task(inputs: str) -> str:
    """A task on one line of flow style."""
    return _HEAD + f"      - call: {{{inputs}}}\n"


@pytest.mark.parametrize(
    "expression",
    [
        '"{{ keychain.api }}"',
        "\"{{ keychain['api'].token }}\"",
        "\"{{ keychain.api | upper | replace('a', 'b') }}\"",
        "\"{{ 'a' | replace('a', keychain.api) }}\"",
        "\"{{ 'Bearer ' ~ keychain.api.token }}\"",
        '"Bearer {{ keychain.api.token }}"',
        '"{{ keychain.api.token[:4] }}"',
        "\"{{ keychain.api.token.split('-')[0] }}\"",
        "\"{{ keychain.api.get('token') }}\"",
        "\"{{ keychain.api if workload.n else 'none' }}\"",
        '"{{ workload.n and keychain.api }}"',
        "\"{{ [keychain.api] | join(',') }}\"",
        "\"{{ {'k': keychain.api} | tojson }}\"",
        '"{{ dict(k=keychain.api) }}"',
        '"{{ workload[keychain.api.name] }}"',
        '"{% set t = keychain.api %}{{ t }}"',
        '"{% set t %}x{{ keychain.api }}{% endset %}{{ t }}"',
        '"{% if workload.n %}{% set t = keychain.api %}{% else %}{% set t = 1 %}{% endif %}{{ t }}"',
        '"{% for k in keychain.api %}{{ k }}{% endfor %}"',
        '"{% for k in [1] %}{{ keychain.api }}{% endfor %}"',
    ],
)
def test_a_secret_stays_secret_through_any_expression(expression: str) -> None:
    text = patch(expression)
    (finding,) = lint(text, "P601")
    assert finding.severity is Severity.ERROR
    assert place(finding, text) == (19, 28 + expression.index("keychain"))
    assert "`ctx.x`" in finding.message
    assert "`keychain" in finding.message


@pytest.mark.parametrize(
    "expression",
    [
        '"{{ keychain.api is defined }}"',
        "\"{{ keychain.api == 'x' }}\"",
        '"{{ not keychain.api }}"',
        '"{{ keychain.api | length }}"',
        "\"{{ keychain.api.startswith('x') }}\"",
        '"{{ 1 if keychain.api else 2 }}"',
        '"{% if keychain.api %}yes{% endif %}"',
        '"{% set t = keychain.api %}{{ workload.n }}"',
        '"{% for t in keychain.api %}x{% endfor %}"',
        '"{{ workload.keychain }}"',
        "\"{{ 'keychain.api' }}\"",
        "keychain.api",
    ],
)
def test_asking_about_a_secret_gives_none_of_it_away(expression: str) -> None:
    assert lint(patch(expression), "P601") == []


def test_a_secret_in_iteration_state_is_stored_too() -> None:
    (finding,) = lint(patch('"{{ keychain.api }}"', "set_iter"), "P601")
    assert "`iter.x`" in finding.message


_SECRETS_TASK = """\
- step: start
  tool:
    - read:
        kind: secrets
        secret: tenants/acme
{policy}
    - use: {{kind: http, url: "https://example.com", json: {{t: "{{{{ _prev }}}}"}}}}
    - later: {{kind: http, url: "https://example.com", json: {{t: "{{{{ _prev }}}}"}}}}
"""


def _policy(*rules: str) -> str:
    return "        spec: {policy: {rules: [" + ", ".join(rules) + "]}}"


def test_the_result_of_the_secrets_tool_is_a_secret_in_its_own_policy() -> None:
    rule = '{else: {then: {do: continue, set_ctx: {t: "{{ outcome.result.value }}", s: "{{ outcome.status }}"}}}}'
    text = _SECRETS_TASK.format(policy=_policy(rule))
    (finding,) = lint(text, "P601")
    assert "`outcome.result.value`" in finding.message


def test_the_whole_outcome_of_the_secrets_tool_contains_the_secret() -> None:
    rule = '{else: {then: {do: continue, set_ctx: {t: "{{ outcome | tojson }}"}}}}'
    assert len(lint(_SECRETS_TASK.format(policy=_policy(rule)), "P601")) == 1


@pytest.mark.parametrize(
    ("policy", "lines"),
    [
        ("", [7]),
        (_policy("{else: {then: {do: continue}}}"), [7]),
        (_policy("{when: \"{{ outcome.status == 'error' }}\", then: {do: fail}}"), [7]),
        (_policy("{else: {then: {do: jump, to: later}}}"), [8]),
        (_policy("{else: {then: {do: break}}}"), []),
    ],
    ids=["no policy", "continues", "continues unmatched", "jumps", "ends"],
)
def test_prev_is_a_secret_where_the_secrets_tool_hands_on(policy: str, lines: list[int]) -> None:
    text = _SECRETS_TASK.format(policy=policy)
    assert [place(finding, text)[0] for finding in lint(text, "P603")] == lines


def test_the_result_of_another_tool_is_no_secret() -> None:
    text = _SECRETS_TASK.replace("kind: secrets", "kind: noop").replace("        secret: tenants/acme\n", "")
    assert lint(text.format(policy=""), "P603") == []


@pytest.mark.parametrize(
    "inputs",
    [
        'kind: http, url: "https://{{ keychain.api }}@example.com"',
        'kind: http, url: "https://example.com", params: {key: "{{ keychain.api | urlencode }}"}',
    ],
)
def test_a_secret_in_a_url_is_an_error(inputs: str) -> None:
    text = task(inputs)
    (finding,) = lint(text, "P602")
    assert finding.severity is Severity.ERROR
    assert place(finding, text) == (10, 16 + inputs.index("keychain"))
    assert lint(text, "P603") == []


@pytest.mark.parametrize(
    ("inputs", "name"),
    [
        ('kind: python, code: result = 1, args: {t: "{{ keychain.api }}"}', "args"),
        ('kind: postgres, auth: api, command: SELECT 1, params: ["{{ keychain.api }}"]', "params"),
        ('kind: shell, command: [curl, "{{ keychain.api }}"]', "command"),
        ('kind: shell, command: env, env: {T: "{{ keychain.api }}"}', "env"),
        ('kind: playbook, path: a/b, workload: {t: "{{ keychain.api }}"}', "workload"),
        ('kind: http, url: "https://example.com", json: {a: [{t: "{{ keychain.api }}"}]}', "json"),
    ],
)
def test_a_secret_in_an_input_that_is_recorded_is_a_warning(inputs: str, name: str) -> None:
    text = task(inputs)
    (finding,) = lint(text, "P603")
    assert finding.severity is Severity.WARNING
    assert place(finding, text) == (10, 16 + inputs.index("keychain"))
    assert f"`{name}`" in finding.message


@pytest.mark.parametrize(
    "inputs",
    [
        'kind: http, url: "https://example.com", headers: {Authorization: "Bearer {{ keychain.api }}"}',
        'kind: http, url: "https://example.com", auth: "{{ keychain.api }}"',
        'kind: postgres, command: SELECT 1, host: "{{ keychain.api.host }}", password: "{{ keychain.api.password }}"',
        'kind: nobody_knows_it, anything: "{{ keychain.api }}"',
    ],
)
def test_secrets_may_flow_into_auth_headers_and_connections(inputs: str) -> None:
    assert [finding for finding in lint(task(inputs)) if finding.code in ("P601", "P602", "P603")] == []


def sql(command: str, kind: str = "postgres") -> str:
    return task(f'kind: {kind}, auth: api, command: "{command}"')


@pytest.mark.parametrize(
    "command",
    [
        "SELECT * FROM {{ workload.host }}",
        "SELECT '{{ workload.host | replace('x', 'y') }}'",
        "SELECT {{ workload.n | int(workload.host) }}",
        "{% for c in workload.host %}{{ c }}{% endfor %}",
        "{% set c = workload.host %}SELECT {{ c }}",
        "SELECT '{{ _prev.id }}'",
    ],
)
def test_data_in_sql_text_is_found_where_it_is_read(command: str) -> None:
    text = sql(command)
    (finding,) = lint(text, "P604")
    column = place(finding, text)[1]
    read = text.splitlines()[9][column - 1 :]
    assert read.startswith(("workload.host", "_prev.id"))
    assert "%(name)s" in finding.help


@pytest.mark.parametrize(
    "command",
    [
        "SELECT 1",
        "SELECT {{ 1 + 1 }}",
        "SELECT * FROM t ORDER BY n {{ 'ASC' if workload.n else 'DESC' }}",
        "SELECT * FROM t LIMIT {{ workload.n | int }}",
        "SELECT {{ workload.host | length }}",
        "SELECT {{ workload.n == 1 }}",
        "SELECT {{ _attempt }}",
        "{% if workload.host %}SELECT 1{% else %}SELECT 2{% endif %}",
        "{% for c in ['a', 'b'] %}{{ c }}{{ ', ' if not loop.last }}{{ loop.index }}{% endfor %}",
    ],
)
def test_sql_text_made_of_constants_and_numbers_is_fine(command: str) -> None:
    assert lint(sql(command), "P604") == []


def test_sql_that_is_data_altogether_is_reported() -> None:
    (finding,) = lint(sql("{{ workload.host }}", "duckdb"), "P604")
    assert finding.message.startswith("the whole SQL text comes from `workload.host`")


def test_the_help_names_the_parameters_of_the_database() -> None:
    (finding,) = lint(sql("SELECT '{{ workload.host }}'", "duckdb"), "P604")
    assert "`$name`" in finding.help


def test_sql_parameters_may_be_data() -> None:
    text = task('kind: postgres, auth: api, command: "SELECT %(x)s", params: {x: "{{ workload.host }}"}')
    assert lint(text, "P604") == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ('"ls {{ workload.host }}"', "part of a shell command"),
        ('"{{ workload.host }}"', "the whole command comes from"),
        ('[sh, -c, "ls {{ workload.host }}"]', "part of a shell script"),
        ('[/bin/bash, -euc, "ls {{ workload.host }}", sh]', "part of a shell script"),
    ],
)
def test_data_in_a_shell_command_is_found(command: str, words: str) -> None:
    text = task(f"kind: shell, command: {command}")
    (finding,) = lint(text, "P605")
    assert words in finding.message
    assert place(finding, text) == (10, 38 + command.index("workload"))


@pytest.mark.parametrize(
    "command",
    [
        '[ls, "{{ workload.host }}"]',
        '[sh, -c, \'ls "$1"\', sh, "{{ workload.host }}"]',
        '[bash, "{{ workload.host }}", -c]',
        '"sleep {{ workload.n | int }}"',
        '"ls"',
        "[]",
    ],
)
def test_arguments_of_a_command_are_never_read_by_a_shell(command: str) -> None:
    assert lint(task(f"kind: shell, command: {command}"), "P605") == []


def test_data_in_python_source_has_its_column_inside_the_block() -> None:
    text = _HEAD + (
        "      - call:\n          kind: python\n          code: |\n            a = 1\n"
        '            result = "{{ workload.host }}"\n'
    )
    (finding,) = lint(text, "P606")
    assert place(finding, text) == (14, 26)
    assert "`args:" in finding.help


def test_python_source_without_data_is_fine() -> None:
    code = "          code: |\n            result = {% raw %}{{1}}{% endraw %}\n"
    assert lint(_HEAD + f"      - call:\n          kind: python\n{code}", "P606") == []


@pytest.mark.parametrize(
    "entry",
    [
        "password: hunter2",
        "password: 12345",
        "db_password: changeme",
        "dbPassword: hunter2",
        'PGPASSWORD_pwd: "hunter2"',
        "token: abcdef0123",
        "api-key: abcdef0123",
        "apiKey: abcdef0123",
        "x-api-key: abcdef0123",
        "client_secret: abcdef0123",
        "secret_access_key: abcdef0123",
        "Authorization: Bearer abcdef",
        "authorization: Basic dXNlcjpwYXNz",
        "tokens: {refresh_token: abcdef0123}",
        "token: [abcdef0123]",
    ],
)
@pytest.mark.parametrize("section", ["workload", "input", "executor", "keychain"])
def test_a_credential_is_known_by_its_key(entry: str, section: str) -> None:
    text = _with_data(section, entry)
    (finding,) = lint(text, "P607")
    assert finding.severity is Severity.WARNING
    value = entry.split(": ")[-1].strip('"[]}')
    assert value not in finding.message + finding.help
    source = whole_playbook(text)
    assert source[finding.span.start : finding.span.end].strip('"') == value


def _with_data(section: str, entry: str) -> str:
    data = {"workload": "n: 1", "input": "n: 1", "executor": "n: 1", "keychain": "n: 1", section: entry}
    return (
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a/b}\n"
        f"keychain: [{{name: api, kind: secret_manager, {data['keychain']}}}]\n"
        f"executor: {{spec: {{{data['executor']}}}}}\n"
        f"workload: {{{data['workload']}}}\n"
        f"workflow: [{{step: start, tool: {{kind: nobody_knows_it, {data['input']}}}}}]\n"
    )


@pytest.mark.parametrize(
    "entry",
    [
        'password: ""',
        'password: "***"',
        "password: xxxx",
        'password: "<password>"',
        'password: "${PASSWORD}"',
        "password: $PASSWORD",
        "password: null",
        'password: "{{ keychain.api.password }}"',
        "token: API_TOKEN",
        "token: api",
        "token: teams/billing/token",
        "token: /run/secrets/token",
        'token: "vault://billing/token"',
        'Authorization: "Bearer ${TOKEN}"',
        "max_tokens: 100",
        "next_page_token: abcdef",
        "token_url: https://example.com/token",
        "tokenizer: words",
        "password_file: /run/x",
        "public_key: abcdef0123",
        "description: the password is in the vault",
    ],
)
def test_a_stand_in_is_no_credential(entry: str) -> None:
    assert lint(_with_data("workload", entry), "P607") == []


@pytest.mark.parametrize(
    ("value", "title"),
    [
        ("AKIA" + "ABCDEFGHIJKLMNOP", "AWS"),
        ("ghp_" + "a1B2" * 9, "GitHub"),
        ("github_pat_" + "a1B2" * 8, "GitHub"),
        ("glpat-" + "a1B2" * 5, "GitLab"),
        ("xoxb-" + "1234567890-abc", "Slack"),
        ("sk-" + "proj-a1B2" * 4, "API key"),
        ("sk_live_" + "a1B2" * 5, "Stripe"),
        ("AIza" + "a1B2c" * 7, "Google"),
        ("npm_" + "a1B2" * 9, "npm"),
        ("eyJ" + "a1B2" * 4 + ".eyJ" + "a1B2" * 4 + "." + "a1B2" * 4, "JWT"),
        ("-----BEGIN RSA " + "PRIVATE KEY-----", "private key"),
    ],
)
def test_a_credential_is_known_by_its_shape(value: str, title: str) -> None:
    text = (
        _HEAD
        + f"      - call:\n          kind: shell\n          command: |\n            true\n            x {value} y\n"
    )
    (finding,) = lint(text, "P607")
    assert title in finding.message
    assert value not in finding.message + finding.help
    assert place(finding, text) == (14, 15)
    assert finding.span.end - finding.span.start == len(value)


def test_a_password_in_a_url_is_found_at_the_user() -> None:
    text = task('kind: http, url: "https://joe:hunter2@example.com/"')
    (finding,) = lint(text, "P607")
    assert place(finding, text) == (10, 42)
    assert "hunter2" not in finding.message


@pytest.mark.parametrize(
    "url", ["https://{{ keychain.api.user }}:{{ keychain.api.pw }}@h/", "https://u:***@h/", "https://h:80/a@b", "a@b:c"]
)
def test_a_url_without_a_literal_password_is_fine(url: str) -> None:
    assert lint(task(f'kind: http, url: "{url}"'), "P607") == []


def test_the_name_of_a_secret_is_no_secret() -> None:
    assert lint(task("kind: secrets, secret: abcdef0123"), "P607") == []


def test_a_credential_over_plain_http_is_found_and_may_be_fixed() -> None:
    text = task("kind: http, url: http://example.com/a, auth: api")
    (finding,) = lint(text, "P608")
    assert place(finding, text) == (10, 33)
    assert finding.fix is not None
    assert not finding.fix.safe
    assert "url: https://example.com/a, auth" in fixed(text, finding)


@pytest.mark.parametrize(
    "inputs",
    [
        'kind: http, url: "http://example.com", headers: {X-Key: "{{ keychain.api }}"}',
        'kind: http, url: "HTTP://{{ workload.host }}/", auth: api',
        'kind: http, url: "http://localhosts.example.com", auth: api',
    ],
)
def test_a_secret_over_plain_http_is_found(inputs: str) -> None:
    assert len(lint(task(inputs), "P608")) == 1


@pytest.mark.parametrize(
    "inputs",
    [
        "kind: http, url: http://example.com",
        "kind: http, url: https://example.com, auth: api",
        "kind: http, url: http://localhost:8080/a, auth: api",
        "kind: http, url: http://127.0.0.1/a, auth: api",
        'kind: http, url: "http://[::1]/a", auth: api',
        'kind: http, url: "{{ workload.host }}", auth: api',
    ],
)
def test_without_a_secret_or_on_one_machine_plain_http_is_fine(inputs: str) -> None:
    assert lint(task(inputs), "P608") == []


def test_plain_http_is_found_in_the_default_that_a_url_begins_with() -> None:
    text = task('kind: http, url: "{{ workload.base }}/a", auth: api').replace("n: 1", 'base: "http://example.com"')
    (finding,) = lint(text, "P608")
    assert place(finding, text)[0] == 10
    assert whole_playbook(text)[finding.related[0].span.start :].startswith("http://example.com")
    assert 'base: "https://example.com"' in fixed(text, finding)
