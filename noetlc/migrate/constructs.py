"""Every construct that `migrate` handles: its code, how it is written, what it becomes and how the meaning stays the same.

The documentation, the reports and `--explain` read this table; the rewrites name its codes.
"""

from __future__ import annotations

from enum import StrEnum

from noetlc.syntax.span import Span
from noetlvm.record import Record


class Effect(StrEnum):
    """What `migrate` does about a construct."""

    REWRITTEN = "rewritten"
    NOTED = "noted"
    """Rewritten or removed, and worth a look: a detail differs."""
    HAND = "needs a hand"
    """Left as it is: a person must decide."""


class Construct(Record):
    """One row of the table."""

    code: str
    written: str
    becomes: str
    meaning: str
    """How the migrated playbook does what the older one did."""
    effect: Effect = Effect.REWRITTEN


class Rewrite(Record):
    """One construct at one place of a file."""

    code: str
    span: Span
    message: str

    @property
    def construct(self) -> Construct:
        return CONSTRUCTS[self.code]


_TABLE = """\
# the document
R101 | `apiVersion: noetl.io/v1`, or none | `apiVersion: noetl.io/v2` | the version of the language
R102 | `metadata` without `name` or `path` | the missing one, made from the other | the catalogue needs both
R103 | root `vars` that nothing writes | entries of `workload`; `vars.x` becomes `workload.x` | inputs that do not change are the workload
R104 | root `vars` that something writes | `set_ctx` in a first task; `vars.x` becomes `ctx.x` | state of the execution starts with the same values
R105 | `executor.kind` | `executor.profile` | the same profile, under its name in v10; `executor.spec.pool` stays
R106 | `workbook` as a list | `workbook.tasks`, a mapping by name | tasks are found by their name
R107 | `auth` or `credential` names without a `keychain` | a `keychain:` section with every name that can occur | v10 resolves credentials before the first step
# steps
R201 | a step's `when` | `spec.policy.admit` with `on_deny: drop` | the guard is evaluated when the token arrives; a refused token is gone
R202 | `spec.next_mode` | `next.spec.mode` | how many arcs fire
R203 | `spec.timeout` | `spec.policy.lifecycle.timeout_s` | the time limit of the step run
R204 | `spec.lease` | removed | the machine manages leases itself | noted
R205 | `tool` as text, with the inputs on the step | a task with `kind` and its inputs | the same call
R206 | a task with its tool under `tool:` | a task with `kind` and its inputs | the same call
R207 | `loop.mode`, `loop.max_in_flight` outside `spec`; `collection`, `element` | `loop.spec`; `in`, `iterator` | the same iterations
R208 | `pipe` | the list under `tool` | a list of tasks is a pipeline
R209 | `sink` or `save` | a last task that ends with `do: skip` | the data is stored; the step's result stays the one before
R210 | `set_ctx`, `set` or `vars` on a step | a last task of kind `noop` with `do: skip` and `set_ctx`; after a loop, a step of that kind | written when the step has succeeded; its result stays
R211 | `args`, `input` or `with` on a step | the tool's `args`; for a tool without, the values where they are read | the same values reach the tool
R212 | `output: {store, output_select}` on a step | removed | large results are stored by the machine, and reading a field loads it | noted
R213 | `name` or `description` on a step | `step`, `desc` | the same names
R214 | `table` with the values of its columns | an `INSERT` with `params`; with `mode: upsert` and `key`, one that updates | the same row is written
# tasks
R301 | another spelling of an input (`query`, `payload`, `endpoint`, `credential`, `input`, …) | the input's canonical name | the same value
R302 | `timeout`, `verify_ssl`, `follow_redirects` on the task | the task's `spec` | the same setting
R303 | `retry: {max_attempts, initial_delay, backoff_multiplier}` | a policy rule with `do: retry` | as many runs, with the same first delay; then the task fails
R304 | a `backoff_multiplier` other than 2, or `max_delay` | `delay` computed from `_attempt`, with `backoff: none` | the same delay before each attempt
R305 | `jitter` of a retry | removed | attempts begin after the delay exactly | noted
# policies
R401 | `eval` with `expr` | `spec.policy.rules` with `when` | the first rule that matches decides
R402 | `eval` in which no rule matched | last rules: `outcome.status == 'error'` fails, everything else continues | an error that no rule handled failed the task; v10 would continue
R403 | `backoff: fixed` | `backoff: none` | the delay stays the same
R404 | `set_vars` | `set_iter` in a loop, else `set_ctx` | the value exists as long as the step run needs it
R405 | `set_shared` | `set_ctx` with a reducer | writes of parallel iterations are combined
R406 | `set_ctx` in a parallel loop | the same, with the reducer `last` | the last write counted; now in the order of the items | noted
R407 | `set_prev` | a task that returns the value | the next task reads it as `_prev`
R408 | `{else: {do}}`, `{when, do}` without `then` | `then: {do}` | the same directive
R409 | a rule without `do` | `do: continue` | the rule only wrote state | noted
R410 | `attempts` that is not a number | its leading digits | as many runs | noted
R411 | `pipe` with `catch.cond` | policy rules of each task | the first condition that matches an error decides; else the task fails
# routing
R501 | `next` as a list or a name | `next: {arcs: […]}`, exclusive | the first arc whose guard holds
R502 | an arc without a guard on `event` | `event.name == 'step.done'`, or `'loop.done'` | a failed step went nowhere
R503 | `next` entries with `when` and `then` | arcs with that guard | the same targets
R504 | `else` among the arcs | a last arc | it holds when no other does
R505 | several targets under one condition | `mode: inclusive`, the conditions made exclusive | all targets of the first condition that holds
R506 | `set` or `set_ctx` on an arc | `args`, or a step in between | written before the target runs
# case
R601 | `case` that leads to steps | arcs | the first entry that leads somewhere and whose guard holds
R602 | `case` with `retry` | a policy rule with `do: retry` | as many runs, then the task fails
R603 | `case` with `retry.params` | `do: jump` to the task, with the next values in `iter` or `ctx` | the call is made again with the next page
R604 | `case` with `collect` | `set_ctx` that grows a list; in a parallel loop a reducer | the same elements in the same order
R605 | `case` with `set` | `set_ctx` in a policy rule | written when the tool has answered
R606 | `case` with tasks | a branch of `choose` after the tool | they run when the guard holds; the step's result stays
R607 | `case` with tasks after an error | a step in between, on `step.failed` | they run when the tool has failed
R608 | `case` with `pipe` | the step's tool list, or a branch of `choose` | the tasks run in order
R609 | `case` entries without a match on an error | last rules: an error fails, everything else continues | an error that no entry handled failed the step
# names
R701 | `result`, `response`, `output`, `error` | `outcome.…` in rules, `event.…` in arcs, `_prev` in inputs | the result of the tool at that place
R702 | `outcome.status == 'success'` | `outcome.status == 'ok'` | the word for success
R703 | `event.name == 'call.done'`, `'call.error'` | `step.done` or `loop.done`, `step.failed` | the same event
R704 | `vars.x` | `ctx.x`, `iter.x` or `workload.x` | where the value is stored now
R705 | `job.uuid`, `job.execution_id` | `execution_id` | the same identifier
R706 | `loop_index` | `iter.index` | the number of the iteration
R707 | `token.args` | `args` | what the token carries
R708 | fields of results that v10 names otherwise (`status_code`, `command_0`, `data` of rows) | the field's name in v10 | the same value
R709 | a condition without `{{ }}` | a template | the condition is evaluated
R710 | `output.data.data` | the field `data` of the body, or of what the code returned | files use `output.data` for the result and for the body: check which one is meant | noted
# the io dialect
R801 | `set` in a rule | `set_ctx`, `set_iter` | the same scope
R802 | `set`, `set_ctx` or `set_iter` on a task | `set_iter` in a loop, else `set_ctx`, when the task has succeeded | later tasks read the name
# what has no counterpart
R901 | `case` with `result` | nothing | the step's result is the last task's: end the pipeline with a task that returns it | needs a hand
R902 | `finally` | nothing | add a step that both `step.done` and `step.failed` lead to | needs a hand
R903 | `loop.cursor`, `loop.frame` | nothing | page with `jump` and `set_iter` inside the loop | needs a hand
R904 | `exports`, `on_no_match`, `bind` | nothing | each has a way of its own, which the report names | needs a hand
R905 | `env.X` | nothing | declare a keychain entry, or pass the value with `--set` | needs a hand
R906 | `set_shared` without a reducer, in a parallel loop | the reducer `last` | the last item's value counts: choose another reducer under `loop.spec.policy.reducers` if that is meant | noted
R907 | `set_prev` with `jump` or `break` | nothing | write the value with `set_iter` or `set_ctx` and read it there | needs a hand
R908 | `auth` that is only known at run time | nothing | declare every name that can occur under `keychain` | needs a hand
R909 | a construct inside an alias or in an unusual layout | nothing | write it out at its own place and migrate again | needs a hand
R910 | a result read where there is none | nothing | read a step by its name, or pass the value with `args` | needs a hand
R911 | `sink` or `save` without a tool | nothing | write a task of the storage's own kind | needs a hand
R912 | `case` with tasks after an error in a loop | nothing | handle the error in the task's policy | needs a hand
R914 | `args`, `input` or `with` on a step with several tools that take them | nothing | write the values into the `args` of the tasks that use them | needs a hand
R915 | `vars` of a step that runs again, read before the step writes them | nothing | the value of the run before is still in `ctx`: write its first value in a task at the beginning of the step | needs a hand
R913 | a tool kind of another name | nothing | install a plugin of that kind, or use a kind that is built in | needs a hand
R917 | a setting of a tool's `retry` that no document names | nothing | write it in the `when` of the rule that retries; the setting is left in a comment | needs a hand
"""
"""Code, how it is written, what it becomes, how the meaning stays; at the end an effect other than `rewritten`."""


def _construct(row: str) -> Construct:
    code, written, becomes, meaning, *effect = row.split(" | ")
    return Construct(code, written, becomes, meaning, *map(Effect, effect))


_ROWS = [_construct(row) for row in _TABLE.splitlines() if not row.startswith("#")]
CONSTRUCTS = {row.code: row for row in _ROWS}


def described(code: str) -> str:
    row = CONSTRUCTS[code]
    return f"{row.written}: {row.becomes}"


class RewriteLog:
    """Collects what was rewritten in one file and what could not be."""

    def __init__(self) -> None:
        self._rewrites: dict[Rewrite, None] = {}
        self.left: list[tuple[str, str, Span]] = []
        """Step, code and place of what has no counterpart and stays as a comment."""

    def leave(self, step: str, code: str, span: Span | None) -> None:
        if span is not None:
            self.left.append((step, code, span))

    def add(self, code: str, span: Span | None, message: str) -> None:
        self._rewrites[Rewrite(code, span or Span(0, 0), message)] = None

    @property
    def changes(self) -> tuple[Rewrite, ...]:
        """In the order of their positions."""
        return tuple(sorted(self._rewrites, key=lambda change: (change.span, change.code)))
