"""What people write, and what lint says about it: each mistake has its findings and no others."""

from __future__ import annotations

import pytest

from noetlc.finding import Finding, Severity
from noetlc.lint.check import check_bytes
from noetlc.lint.fixing import fix_text
from noetlvm.language.names import NAME_CHARS_MAX

LONG = "x" * (NAME_CHARS_MAX + 1)
HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\n"
KEYCHAIN = "keychain:\n  - {name: pg, kind: postgres_credential}\n"


def playbook(steps: str, before: str = "") -> str:
    return f"{HEADER}{before}workflow:\n{steps}"


def task(inputs: str, before: str = "") -> str:
    return playbook(f"  - step: start\n    tool: {{{inputs}}}\n", before)


def rules(*lines: str) -> str:
    head = "  - step: start\n    tool:\n      kind: noop\n      spec:\n        policy:\n          rules:\n"
    return playbook(head + "".join(f"            - {line}\n" for line in lines))


CALL_DONE = """  - step: start
    tool: {kind: http, url: "https://example.com"}
    next:
      arcs:
        - {step: b, when: "{{ event.name == 'step.done' }}"}
        - {step: c, when: "{{ event.name == 'call.error' }}"}
  - step: b
    tool: {kind: noop}
  - step: c
    tool: {kind: noop}
"""
UNGUARDED = """  - step: start
    tool: {kind: http, url: "https://example.com"}
    next:
      arcs:
        - step: b
  - step: b
    tool: {kind: http, url: "https://example.com"}
    next: {arcs: [{step: c}]}
  - step: c
    tool: {kind: noop}
"""
READS_X = '  - step: b\n    tool: {kind: shell, command: [echo, "{{ ctx.x }}"]}\n'
TO_B = "    next: {arcs: [{step: b, when: \"{{ event.name == 'step.done' }}\"}]}\n"

HTTP = "    tool: {kind: http, url: 'https://example.com'}\n"
FORK_WITH_GATE = """  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
  - step: a
    tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {x: 1}}}}]}}}
  - step: b
    spec: {policy: {admit: {%srules: [{when: "{{ ctx.x is defined }}", then: {allow: true}}, %s]}}}
    tool: {kind: shell, command: [echo, "{{ ctx.x }}"]}
"""
DENY = "{else: {then: {allow: false}}}"
NESTED = """  - step: start
    loop:
      in: [1, 2]
      iterator: a
      spec: {mode: parallel, policy: {reducers: {total: sum}}}
      loop:
        in: [1, 2]
        iterator: b
        spec: {mode: parallel%s}
    tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {total: 1}}}}]}}}
    next: {arcs: [{step: b, when: "{{ event.name == 'loop.done' and ctx.total > 1 }}"}]}
  - step: b
    tool: {kind: noop}
"""


def reads(path: str, kind: str = "kind: http, url: 'https://example.com'", before: str = "") -> str:
    """Return a playbook whose second step reads a result of the first."""
    second = f'  - step: b\n    tool: {{kind: shell, command: [echo, "{{{{ {path} }}}}"]}}\n'
    return playbook(f"  - step: start\n    tool: {{{kind}}}\n{TO_B}{second}", before)


def pipeline(second: str, before: str = "") -> str:
    """Return a playbook with a task after one that is called `fetch`."""
    tasks = f"      - fetch: {{kind: shell, command: [ls]}}\n      - second: {{{second}}}\n"
    return playbook(f"  - step: start\n    tool:\n{tasks}", before)


def statement(text: str, before: str = "") -> str:
    return task(f'kind: shell, command: [echo, "{text}"]', before)


FEW_OLDER_WORDS = """  - step: start
    tool:
      kind: http
      url: "https://example.com"
      eval:
        - expr: "{{ outcome.status == 'error' }}"
          do: fail
        - else: {do: continue, set_ctx: {x: 1}}
    next: [{step: b}]
"""
REDUCED = """  - step: start
    loop: {in: [1, 2], iterator: n, spec: {mode: sequential, policy: {reducers: {x: %s}}}}
    tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {x: "{{ %s }}"}}}}]}}}
"""
PAGES = """  - step: start
    tool:
      - init: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_iter: {page: 1}}}}]}}}
      - fetch:
          kind: http
          url: "https://example.com?page={{ iter.page }}"
      - turn:
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ iter.page < 3 }}"
                  then: {do: jump, to: fetch, set_iter: {page: "{{ iter.page + 1 }}"}}
                - else:
                    then: {do: continue}
"""
EMPTY = """  - step: start
    desc:
    spec:
    tool: {kind: http, url: "https://example.com", headers: , params: , spec: }
    next: {spec: , arcs: [{step: b, when: "{{ event.name == 'step.done' }}", args: }]}
  - step: b
    tool: {kind: noop}
    next:
"""
CHOOSE = """  - step: start
    tool:
      - choose:
          - {when: "{{ workload.n == 1 }}", do: [{a: {kind: noop}}]}
          - else: {do: [{b: {kind: noop}}]}
"""


def statement_of_shell(command: str) -> str:
    return task(f'kind: shell, cmds: ["{command}"]')


READS_START = READS_X.replace("ctx.x", "start.data")
AFTER_LOOP = TO_B.replace("step.done", "loop.done")
SEVERAL = "kind: postgres, auth: pg, command: SELECT 1; SELECT 2"
SQL = "kind: postgres, auth: pg, command: SELECT 1"
EACH = "{%% for row in %s %%}{{ row }}{%% endfor %%}"

VERDICTS: dict[str, tuple[str, list[str]]] = {
    # One mistake, one finding.
    "misspelt input": (task('kind: http, urll: "https://example.com"'), ["error P114"]),
    "set_ctx on a task": (
        playbook(f"  - step: start\n    tool: {{kind: noop, set_ctx: {{x: 1}}}}\n{TO_B}{READS_X}"),
        ["error P324"],
    ),
    "set_ctx on a step": (
        playbook(f"  - step: start\n    tool: {{kind: noop}}\n    set_ctx: {{x: 1}}\n{TO_B}{READS_X}"),
        ["error P324"],
    ),
    "set_ctx on an arc": (
        playbook("  - step: start\n    tool: {kind: noop}\n    next: {arcs: [{step: b, set_ctx: {x: 1}}]}\n" + READS_X),
        ["error P324"],
    ),
    "few words of the older dialect": (playbook(FEW_OLDER_WORDS + READS_X), ["error P900"]),
    "input as the only word of its dialect": (
        playbook(
            "".join(
                f"  - step: {name}\n    tool: {{kind: python, input: {{a: 1}}, code: result = a}}\n" for name in "abcd"
            )
        ),
        ["note P122", "warning P410", "warning P410", "warning P410"],
    ),
    "else among the arcs": (
        playbook(
            "  - step: start\n    next: {arcs: [{step: b, when: '{{ workload.n > 1 }}'}, {step: c, else: true}]}\n"
            "  - step: b\n    tool: {kind: noop}\n  - step: c\n    tool: {kind: noop}\n",
            "workload: {n: 1}\n",
        ),
        ["error P020"],
    ),
    "a reducer that a sequential loop does not apply": (
        playbook(REDUCED % ("append", "iter.n") + AFTER_LOOP + READS_X),
        ["error P317"],
    ),
    "a reducer beside values that are combined by hand": (
        playbook(REDUCED % ("append", "ctx.x | default([]) + [iter.n]") + AFTER_LOOP + READS_X),
        ["warning P317"],
    ),
    "the reducer last of a sequential loop": (
        playbook(REDUCED % ("last", "iter.n") + AFTER_LOOP + READS_X),
        ["warning P317"],
    ),
    "the execution's identifier in a shell command": (statement_of_shell("echo {{ execution_id }}"), []),
    "the environment in a shell command": (statement_of_shell("echo {{ env.HOME }}"), ["warning P215"]),
    "set_iter in a step without a loop": (playbook(PAGES), ["error P305"]),
    "do for then in a choose": (playbook(CHOOSE, "workload: {n: 1}\n"), ["error P020", "error P020"]),
    "errors that no rule matches": (
        task("kind: shell, command: [ls], spec: {policy: {rules: [{when: '{{ args.a }}', then: {do: break}}]}}"),
        ["warning P314"],
    ),
    "keys without a value": (playbook(EMPTY, "keychain:\nworkload:\nexecutor:\nworkbook:\n"), ["error P903"]),
    "an empty list is not a mapping": (playbook(EMPTY, "workbook: []\n"), ["error P107", "error P903"]),
    "a required input without a value": (task("kind: http, url: "), ["error P115"]),
    "a guard without a value": (
        playbook("  - step: start\n    next: {arcs: [{step: b, when: }]}\n  - step: b\n    tool: {kind: noop}\n"),
        ["error P021"],
    ),
    "a rule without then": (
        rules("{when: \"{{ outcome.status == 'ok' }}\", do: continue, set_ctx: {x: 1}}", "{else: {then: {do: fail}}}"),
        ["error P309"],
    ),
    "a workbook that is a list": (
        task("kind: workbook, task: t", "workbook:\n  - {name: t, kind: noop}\n"),
        ["error P107"],
    ),
    # Helps that say what to write: see HELPS.
    "a keychain entry without kind": (
        task('kind: http, url: "https://example.com", auth: t', "keychain:\n  - {name: t}\n"),
        ["error P022"],
    ),
    "a template of Go with several marks": (
        task("kind: shell, command: \"kubectl get -o go-template='{{range .items}}{{.name}}{{end}}' {{ ctx.x }}\""),
        ["error P201"],
    ),
    "an event's name of another engine": (playbook(CALL_DONE.replace("call.error", "step.completed")), ["error P211"]),
    "command_0 of several statements": (reads("start.command_0.rows", SEVERAL, KEYCHAIN), ["warning P216"]),
    "command_0 under data": (reads("start.data.command_0.rows", SQL, KEYCHAIN), ["warning P216"]),
    "status_code of outcome.http": (
        playbook(
            "  - step: start\n    tool: {kind: http, url: 'https://example.com', spec: {policy: {rules: [{when: "
            '"{{ outcome.http.status_code == 429 }}", then: {do: fail}}, {else: {then: {do: continue}}}]}}}\n'
        ),
        ["warning P216"],
    ),
    "a label that comes later": (
        playbook(
            '  - step: start\n    tool:\n      - one: {kind: shell, command: [echo, "{{ two.stdout }}"]}\n'
            "      - two: {kind: shell, command: [ls]}\n"
        ),
        ["warning P215"],
    ),
    "a label that comes later in the round before": (
        playbook(
            "  - step: start\n    tool:\n      - while:\n          when: true\n          max: 3\n          do:\n"
            '            - one: {kind: shell, command: [echo, "{{ two.stdout }}"]}\n'
            "            - two: {kind: shell, command: [ls]}\n"
        ),
        [],
    ),
    "vars at the root and their readers": (
        task('kind: shell, command: [echo, "{{ vars.x }}", "{{ vars.y }}"]', "vars: {x: 1, y: 2}\n"),
        ["error P025"],
    ),
    "a rule without when or else": (rules("{then: {do: fail}}"), ["error P309"]),
    "an arc without a step": (
        playbook(
            "  - step: start\n    tool: {kind: http, url: 'https://example.com'}\n    next: {arcs: [{stepp: b}]}\n"
        ),
        ["error P020"],
    ),
    "mode beside the loop's spec": (
        playbook("  - step: start\n    loop: {in: [1], iterator: n, mode: parallel}\n    tool: {kind: noop}\n"),
        ["error P020"],
    ),
    "a task of the workbook by name": (
        task("kind: workbook, name: t", "workbook: {tasks: {t: {kind: noop}}}\n"),
        ["error P113"],
    ),
    "the length of a shell's variable": (task("kind: shell, command: 'echo ${#x} {# a #}'"), ["warning P212"]),
    "the length of a shell's variable alone": (task("kind: shell, command: 'echo ${#x}'"), ["error P201"]),
    "executor.kind that is no profile": (task("kind: noop", "executor: {kind: noetl_runtime}\n"), ["warning P910"]),
    "which iterations failed": (
        playbook(
            "  - step: start\n    loop: {in: [1], iterator: n}\n    tool: {kind: noop}\n"
            '    next: {arcs: [{step: b, args: {x: "{{ event.loop.failures }}"}}]}\n  - step: b\n'
            '    tool: {kind: shell, command: [echo, "{{ args.x }}"]}\n'
        ),
        [],
    ),
    "credentials without a keychain": (
        pipeline("kind: postgres, auth: pg_main, command: SELECT 1").replace(
            "kind: shell, command: [ls]", "kind: postgres, auth: pg_main, command: SELECT 2"
        ),
        ["warning P110"],
    ),
    "one undeclared credential in two tasks": (
        pipeline("kind: postgres, auth: pgg, command: SELECT 1", KEYCHAIN).replace(
            "kind: shell, command: [ls]", "kind: postgres, auth: pgg, command: SELECT 2"
        ),
        ["error P110"],
    ),
    "an undeclared credential in a mapping": (
        task(
            "kind: http, url: 'https://example.com', auth: {source: tokn}", "keychain: [{name: token, kind: bearer}]\n"
        ),
        ["error P110"],
    ),
    "auth in a mapping, over a default": (
        task(
            'kind: postgres, auth: {source: credential, key: "{{ workload.db.auth }}"}, command: SELECT 1',
            "workload: {db: {auth: pg_main}}\n",
        ),
        ["warning P110"],
    ),
    "auth over its own default": (
        task("kind: postgres, auth: \"{{ workload.pg_auth | default('pg_main') }}\", command: SELECT 1", KEYCHAIN),
        ["error P110"],
    ),
    "attached databases over defaults": (
        task(
            'kind: duckdb, attach: {a: {type: postgres, key: "{{ workload.pg }}"}}, command: SELECT 1',
            f"workload: {{pg: warehouse}}\n{KEYCHAIN}",
        ),
        ["error P110"],
    ),
    "a credential of a misspelt kind": (
        task("kind: postgress, auth: pg_main, command: SELECT 1"),
        ["error P106", "warning P110"],
    ),
    "a keychain provider that is not installed": (
        task(
            "kind: http, url: 'https://example.com', auth: k",
            'keychain: [{name: k, kind: secret_manager, provider: gcp, map: {a: "{{ workload.a }}"}}]\n',
        ),
        ["warning P123"],
    ),
    "templates in the settings of a plugin's entry": (
        task(
            "kind: http, url: 'https://example.com', auth: k",
            'keychain: [{name: k, kind: oauth2, id: "{{ keychain.i }}"}, {name: i, kind: credential}]\n',
        ),
        ["warning P123"],
    ),
    "a gate that waits for what is read": (
        playbook((FORK_WITH_GATE % ("", DENY)).replace(" is defined", "")),
        [],
    ),
    "a statement that does not work": (
        task("kind: shell, command: '{% macro f(x) %}{{ x }}{% endmacro %}{{ f(1) }}'"),
        ["error P207"],
    ),
    "braces of Python": (task("kind: python, code: \"result = f'{{1: {x}}}' + '{%s}' % 3\""), ["error P201"]),
    "a directive in a gate": (
        playbook(
            "  - step: start\n    spec: {policy: {admit: {rules: [{else: {then: {do: continue}}}]}}}\n"
            "    tool: {kind: noop}\n"
        ),
        ["error P304"],
    ),
    "inputs that no table knows": (
        task("kind: http, url: 'https://example.com', frobnicate: 1, twist: 2"),
        ["warning P114"],
    ),
    "a dotted key": (
        task("kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {a.b: 1}}}}]}}"),
        ["error P316"],
    ),
    "auth that is a list": (task("kind: http, url: 'https://example.com', auth: [a, b]"), ["error P115"]),
    "sections without a value": (task("kind: noop", "workload:\nkeychain:\nexecutor:\nworkbook:\n"), []),
    "a template of Go": (task('kind: shell, command: [docker, ps, --format, "{{.Names}}"]'), ["error P201"]),
    "output of another dialect in a guard": (
        playbook(
            f"  - step: start\n{HTTP}    next: {{arcs: [{{step: b, when: \"{{{{ event.name == 'step.done' and "
            'output.data.ok }}"}]}\n  - step: b\n    tool: {kind: noop}\n'
        ),
        ["error P215"],
    ),
    "a label in an arc": (
        playbook(
            "  - step: start\n    tool:\n      - get: {kind: shell, command: [ls]}\n    next: {arcs: [{step: b, when: "
            "\"{{ event.name == 'step.done' and get.stdout }}\"}]}\n  - step: b\n    tool: {kind: noop}\n"
        ),
        ["warning P215"],
    ),
    "a step that is called like a workload key": (
        reads("start.id", "kind: python, code: 'result = 1'", "workload: {start: 1}\n"),
        ["warning P214"],
    ),
    "vars that ctx holds": (
        playbook(
            "  - step: start\n    tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, "
            f"set_ctx: {{x: 1}}}}}}}}]}}}}}}\n{TO_B}" + READS_X.replace("ctx.x", "vars.x")
        ),
        ["error P911"],
    ),
    "next_mode": (
        playbook(
            "  - step: start\n    spec: {next_mode: inclusive}\n    next: {arcs: [{step: a}, {step: b}]}\n"
            "  - step: a\n    tool: {kind: noop}\n  - step: b\n    tool: {kind: noop}\n"
        ),
        ["error P904"],
    ),
    "save on a task": (
        task("kind: shell, command: [ls], save: {storage: postgres, auth: pg, table: t, data: {a: 1}}", KEYCHAIN),
        ["error P909"],
    ),
    "save on a step": (
        playbook(
            "  - step: start\n    tool: {kind: shell, command: [ls]}\n"
            "    save: {tool: {kind: duckdb, table: t, mode: upsert, key: a, data: {a: 1, b: 2}}}\n"
        ),
        ["error P909"],
    ),
    "a retry that no policy expresses": (
        task("kind: http, url: 'https://example.com', retry: {max_attempts: 3, stop_when: \"{{ error }}\"}"),
        ["error P114"],
    ),
    "a retry of other names": (
        task(
            "kind: http, url: 'https://example.com', retry: {max_attempts: 3, initial_delay: 1, max_delay: 9, "
            'backoff_multiplier: 1.5, jitter: true, retry_when: "{{ status_code >= 500 or error }}"}'
        ),
        ["error P114"],
    ),
    "a field of a loop's result": (
        playbook(f"  - step: start\n    loop: {{in: [1], iterator: n}}\n{HTTP}{AFTER_LOOP}" + READS_START),
        ["warning P216"],
    ),
    "a field of one iteration's result": (
        playbook(
            f"  - step: start\n    loop: {{in: [1], iterator: n}}\n{HTTP}{AFTER_LOOP}"
            + READS_START.replace("start.data", "start[0].data")
        ),
        [],
    ),
    "one name twice in one command": (
        task("kind: shell, cmds: ['echo {{ workload.a }}', 'ls {{ workload.a }}']", "workload: {a: b}\n"),
        ["warning P605"],
    ),
    "options of bash": (
        task('kind: shell, cmds: ["set -euo pipefail\\nls | sort", "[[ -f a ]] && echo a"]'),
        ["warning P221"],
    ),
    "an array of bash": (task('kind: shell, command: "xs=(a b)\\necho ${xs[0]}"'), ["warning P221"]),
    "bash that is called": (task("kind: shell, command: [bash, -c, '[[ -f a ]]']"), []),
    "double brackets in a text": (task("kind: shell, command: 'echo \"[[ a ]]\"'"), []),
    "braces of an f-string": (task("kind: python, code: \"result = f'{{x}}'\""), ["warning P215"]),
    "args on a step": (
        playbook('  - step: start\n    args: {n: 1}\n    tool: {kind: python, code: "result = n"}\n'),
        ["error P020"],
    ),
    "else on an arc": (
        playbook(
            '  - step: start\n    next: {arcs: [{step: b, when: "{{ workload.a }}"}, {step: c, else: true}]}\n'
            "  - step: b\n    tool: {kind: noop}\n  - step: c\n    tool: {kind: noop}\n",
            "workload: {a: 1}\n",
        ),
        ["error P020"],
    ),
    "labelled tasks in a mapping": (
        playbook("  - step: start\n    tool:\n      a: {kind: shell, command: [ls]}\n      b: {kind: noop}\n"),
        ["error P022"],
    ),
    "indentation by tabs": (
        task("kind: noop").replace("metadata: {name: a, path: a}", "metadata:\n\tname: a\n\tpath: a"),
        ["error P003"],
    ),
    "indentation by tabs in a list": (playbook("- step: start\n\ttool:\n\t\tkind: noop\n"), ["error P003"]),
    # What is no mistake.
    "a body that is a mapping": (task('kind: http, method: POST, url: "https://example.com", body: {a: 1}'), []),
    "execution_id in SQL": (
        task("kind: postgres, auth: pg, command: \"SELECT '{{ execution_id }}'\"", KEYCHAIN),
        [],
    ),
    "executor.requires": (task("kind: noop", "executor: {requires: {tools: [noop]}}\n"), ["note P322"]),
    "a document of another kind": (
        "apiVersion: noetl.io/v2\nkind: Subscription\nmetadata: {name: a}\nspec: {}\n",
        ["error P024"],
    ),
    # One warning a playbook.
    "arcs without guards": (playbook(UNGUARDED), ["warning P407"]),
    # What used to pass.
    "auth over a default that the keychain lacks": (
        task('kind: postgres, auth: "{{ workload.pg }}", command: "SELECT 1"', f"workload: {{pg: pgg}}\n{KEYCHAIN}"),
        ["error P110"],
    ),
    "auth over a default that the keychain has": (
        task('kind: postgres, auth: "{{ workload.pg }}", command: "SELECT 1"', f"workload: {{pg: pg}}\n{KEYCHAIN}"),
        [],
    ),
    "a loop over a text": (
        playbook(
            '  - step: start\n    loop: {in: "{{ workload.rows }}", iterator: row}\n    tool: {kind: noop}\n',
            "workload: {rows: abc}\n",
        ),
        ["warning P318"],
    ),
    "arithmetic on a text": (
        task('kind: shell, command: [echo, "{{ workload.n + 1 }}"]', "workload: {n: '5'}\n"),
        ["warning P220"],
    ),
    "a misspelt name under default": (
        task('kind: shell, command: [echo, "{{ api_ulr | default(1) }}"]', "workload: {api_url: x}\n"),
        ["note P215"],
    ),
    "a name under default that a request may bring": (
        task('kind: shell, command: [echo, "{{ day | default(1) }}"]'),
        [],
    ),
    "call.error": (playbook(CALL_DONE), ["error P211"]),
    "vars on a step": (
        playbook(f"  - step: start\n    tool: {{kind: noop}}\n    vars: {{x: 1}}\n{TO_B}{READS_X}"),
        ["error P911"],
    ),
    "do beside else": (
        rules("{when: \"{{ outcome.status == 'error' }}\", then: {do: fail}}", "{else: {do: continue}}"),
        ["error P309"],
    ),
    "a step's name with a slash": (playbook("  - step: load/items\n    tool: {kind: noop}\n"), ["warning P028"]),
    "a step's name with a space": (playbook("  - step: load items\n    tool: {kind: noop}\n"), ["error P028"]),
    "a step's name that is too long": (playbook(f"  - step: {LONG}\n    tool: {{kind: noop}}\n"), ["error P028"]),
    "a label that is too long": (task(f"name: {LONG}, kind: noop"), ["error P028"]),
    "an empty path": (
        playbook("  - {step: start, tool: {kind: noop}}\n").replace("path: a", "path: ''"),
        ["error P028"],
    ),
    "a key of ctx that is too long": (
        rules(f"{{else: {{then: {{do: continue, set_ctx: {{? {LONG} : 1}}}}}}}}"),
        ["error P316", "note P513"],
    ),
    "calls that make a label too long": (
        playbook(
            f"  - step: start\n    tool: {{name: {LONG[:600]}, kind: workbook, task: a}}\n",
            f"workbook: {{tasks: {{a: [{{name: {LONG[:600]}, kind: noop}}, {{name: b, kind: noop}}]}}}}\n",
        ),
        ["error P120"],
    ),
    "timeout_s in the step's spec": (
        playbook("  - step: start\n    spec: {timeout_s: 5}\n    tool: {kind: noop}\n"),
        ["error P323"],
    ),
    "a setting almost of the tool": (
        task("kind: http, url: 'https://example.com', spec: {timeot: 5}"),
        ["error P121"],
    ),
    "a setting almost of a kind, further out": (
        playbook(
            "  - step: start\n    spec: {http: {timeot: 5}}\n    tool: {kind: http, url: 'https://example.com'}\n"
        ),
        ["error P323"],
    ),
    "a setting that a kind does not have, further out": (
        playbook(
            "  - step: start\n    spec: {http: {colour: 5}}\n    tool: {kind: http, url: 'https://example.com'}\n"
        ),
        ["warning P323"],
    ),
    "an input under spec": (task("kind: http, spec: {url: 'https://example.com'}"), ["warning P121"]),
    "other spellings": (
        task("kind: http, endpoint: 'https://example.com', payload: {a: 1}, timeout: 5, verify_ssl: false"),
        ["note P122", "warning P124", "warning P124"],
    ),
    "other spellings of SQL": (task("kind: postgres, credential: pg, query: SELECT 1", KEYCHAIN), ["note P122"]),
    "job.uuid": (statement("{{ job.uuid }}"), ["note P122"]),
    "the environment": (statement("{{ env.HOME }}"), ["warning P215"]),
    "an input that no table knows": (
        task("kind: http, url: 'https://example.com', frobnicate: 1"),
        ["warning P114"],
    ),
    "a tool kind of a plugin": (task("kind: snowflake, query: SELECT 1"), ["warning P106"]),
    "a keychain kind of a plugin": (
        task("kind: http, url: 'https://example.com', auth: k", "keychain:\n  - {name: k, kind: oauth2}\n"),
        ["warning P123"],
    ),
    "a misspelt keychain kind": (
        task("kind: http, url: 'https://example.com', auth: k", "keychain:\n  - {name: k, kind: bearer_tokn}\n"),
        ["warning P123"],
    ),
    "Python that is none": (task("kind: python, code: 'x ='"), ["error P219"]),
    "a return at top level": (task("kind: python, code: 'return 1'"), []),
    "an empty SQL command": (task("kind: postgres, auth: pg, command: ' ; '", KEYCHAIN), ["error P113"]),
    "a child's step": (task("kind: playbook, path: x, return_step: totals"), []),
    "status_code of an http result": (reads("start.status_code"), ["warning P216"]),
    "command_0 of an SQL result": (reads("start.command_0.rows", SQL, KEYCHAIN), ["warning P216"]),
    "data of an SQL result": (reads("start.data", SQL, KEYCHAIN), ["warning P216"]),
    "rows of an SQL result": (reads("start.rows", SQL, KEYCHAIN), []),
    "any field of what Python returns": (reads("start.anything", "kind: python, code: 'result = {}'"), []),
    "a field that event.result does not have": (
        playbook(
            f"  - step: start\n{HTTP}    next: {{arcs: [{{step: b, "
            "when: \"{{ event.name == 'step.done' and event.result.status_code == 200 }}\"}]}\n"
            "  - step: b\n    tool: {kind: noop}\n"
        ),
        ["warning P216"],
    ),
    "a field that a label's result does not have": (
        pipeline('kind: shell, command: [echo, "{{ fetch.output }}"]'),
        ["warning P216"],
    ),
    "a field that _prev does not have": (
        pipeline('kind: shell, command: [echo, "{{ _prev.output }}"]'),
        ["warning P216"],
    ),
    "a field that a label's result has": (pipeline('kind: shell, command: [echo, "{{ fetch.stdout }}"]'), []),
    "a misspelt label under default": (
        pipeline("kind: shell, command: [echo, \"{{ fecth.stdout | default('') }}\"]"),
        ["note P215"],
    ),
    "for over a name that nothing defines": (statement(EACH % "rows_of_it"), ["warning P215"]),
    "for over a workload key without default": (
        statement(EACH % "workload.rowz", "workload: {rows: [1]}\n"),
        ["warning P504"],
    ),
    "for over a ctx key that nothing writes": (statement(EACH % "ctx.rows"), ["warning P506"]),
    "for over something with a default": (statement(EACH % "(ctx.rows | default([]))"), []),
    "a step that is named by name": (playbook("  - name: start\n    tool: {kind: noop}\n"), ["error P020"]),
    "a keychain that is a mapping": (
        task("kind: postgres, auth: pg, command: SELECT 1", "keychain:\n  pg: {kind: postgres_credential}\n"),
        ["error P021"],
    ),
    "a workflow that is a mapping": (playbook("  start:\n    tool: {kind: noop}\n"), ["error P021"]),
    "a loop over an expression without braces": (
        playbook("  - step: start\n    loop: {in: workload.items, iterator: n}\n    tool: {kind: noop}\n"),
        ["error P021"],
    ),
    "a method in lower case": (task("kind: http, url: 'https://example.com', method: post, json: {}"), []),
    "a race that a gate rules out": (playbook(FORK_WITH_GATE % ("", DENY)), []),
    "a race that a dropping gate leaves": (
        playbook(FORK_WITH_GATE % ("on_deny: drop, ", DENY)),
        ["warning P512"],
    ),
    "a key that only the outer loop reduces": (playbook(NESTED % ""), ["warning P501"]),
    "a key that both loops reduce": (playbook(NESTED % ", policy: {reducers: {total: sum}}"), []),
}

HELPS = {
    "output of another dialect in a guard": "`event` in an arc",
    "a label in an arc": "event.result",
    "a step that is called like a workload key": "rename the step",
    "a field of a loop's result": "start[0].data",
    "one name twice in one command": 'env: {NAME: "{{ … }}"}',
    "braces of an f-string": "{% raw %}",
    "options of bash": "[bash, -euc",
    "args on a step": "`args` of the task",
    "else on an arc": "without `when`",
    "labelled tasks in a mapping": "`- a: …`, `- b: …`",
    "indentation by tabs": "spaces, not tabs",
    "a step that is named by name": "did you mean `step`?",
    "a keychain that is a mapping": "- {name: api_token, kind: bearer_token}",
    "a workflow that is a mapping": "- step: start",
    "a loop over an expression without braces": 'in: "{{ workload.items }}"',
    "a keychain entry without kind": "form of the secret",
    "a template of Go": "{% raw %}",
    "braces of Python": "{% raw %}",
    "an event's name of another engine": "step.done",
    "command_0 of several statements": "start.statements[0]",
    "command_0 under data": "start",
    "status_code of outcome.http": "outcome.http.status",
    "mode beside the loop's spec": "loop.spec.mode",
    "a task of the workbook by name": "task: t",
    "the length of a shell's variable": "{% raw %}",
    "the length of a shell's variable alone": "{% raw %}",
    "credentials without a keychain": "keychain: [{name: pg_main, kind: postgres_credential}]",
    "a keychain provider that is not installed": "--keychain k=env:VARIABLE",
    "a workbook that is a list": "workbook: {tasks:",
    "a rule without then": "then: { do: …, set_ctx: … }",
    "set_ctx on a step": "append a task",
    "set_ctx on an arc": "args:",
    "call.error": "step.failed",
    "a step's name with a slash": "load_items",
    "timeout_s in the step's spec": "spec.policy.lifecycle.timeout_s",
    "status_code of an http result": "start.status",
    "command_0 of an SQL result": "start",
    "data of an SQL result": "start.rows",
    "a keychain kind of a plugin": "noetlvm.keychain",
    "a misspelt keychain kind": "bearer_token",
    "the environment": "keychain entry",
    "a key that only the outer loop reduces": "the loop over `b`",
}


def findings(text: str) -> list[Finding]:
    return list(check_bytes("a.yaml", text.encode()).findings)


def shown(text: str) -> list[str]:
    return [f"{finding.severity} {finding.code}" for finding in findings(text)]


@pytest.mark.parametrize("name", VERDICTS)
def test_a_mistake_has_its_findings_and_no_others(name: str) -> None:
    text, expected = VERDICTS[name]
    assert shown(text) == expected


@pytest.mark.parametrize("name", HELPS)
def test_the_help_says_what_to_write(name: str) -> None:
    finding = findings(VERDICTS[name][0])[0]
    assert HELPS[name] in finding.help


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("name", VERDICTS)
def test_fixes_converge_in_one_run_and_add_no_error(name: str, unsafe: bool) -> None:
    text = VERDICTS[name][0]
    fixed = fix_text(text, findings, unsafe=unsafe)
    assert fixed.problem is None
    assert fix_text(fixed.text, findings, unsafe=unsafe).text == fixed.text
    errors = [one for one in shown(text) if one.startswith(Severity.ERROR)]
    assert len([one for one in shown(fixed.text) if one.startswith(Severity.ERROR)]) <= len(errors)


MECHANICAL = [
    "a reducer that a sequential loop does not apply",
    "few words of the older dialect",
    "else among the arcs",
    "set_iter in a step without a loop",
    "do for then in a choose",
    "arcs without guards",
    "call.error",
    "misspelt input",
    "set_ctx on a task",
    "set_ctx on a step",
    "set_ctx on an arc",
    "do beside else",
    "vars on a step",
    "an input under spec",
    "other spellings",
    "other spellings of SQL",
    "job.uuid",
    "status_code of an http result",
    "command_0 of an SQL result",
    "data of an SQL result",
    "a workbook that is a list",
    "a task of the workbook by name",
    "a template of Go",
    "command_0 of several statements",
    "command_0 under data",
    "status_code of outcome.http",
    "credentials without a keychain",
    "next_mode",
    "vars that ctx holds",
    "save on a task",
    "save on a step",
    "args on a step",
]


SPELLED = ["other spellings", "other spellings of SQL", "job.uuid", "an input under spec"]


@pytest.mark.parametrize("name", [*SPELLED, "credentials without a keychain"])
def test_safe_fixes_leave_nothing_of_another_spelling(name: str) -> None:
    fixed = fix_text(VERDICTS[name][0], findings, unsafe=False)
    assert shown(fixed.text) == []


@pytest.mark.parametrize("name", MECHANICAL)
def test_unsafe_fixes_leave_nothing_of_a_mechanical_mistake(name: str) -> None:
    fixed = fix_text(VERDICTS[name][0], findings, unsafe=True)
    assert shown(fixed.text) == []
