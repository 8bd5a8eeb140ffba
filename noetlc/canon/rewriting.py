"""Copies of tasks and blocks with arguments put in and jumps renamed. What has nothing to change is the same again."""

from __future__ import annotations

from collections.abc import Callable

from noetlc.canon.arguments import Arguments
from noetlc.canon.synthesis import keys, scalar
from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import Scalar


def rewritten_task(task: ast.Task, arguments: Arguments, label: Callable[[str], str]) -> ast.Task:
    """Put arguments into everything in a task that is evaluated, and rename what it jumps to."""
    return ast.Task(
        span=task.span,
        keys=task.keys,
        extra=arguments.in_entries(task.extra),
        label=task.label,
        kind=task.kind,
        desc=task.desc,
        spec=_spec(task.spec, arguments, label),
    )


def with_policy(task: ast.Task, policy: ast.TaskPolicy) -> ast.Task:
    """Give a task a policy."""
    spec = ast.TaskSpec(
        span=policy.span,
        keys={**(task.spec.keys if task.spec else {}), **keys(policy.span, ("policy",))},
        extra=task.spec.extra if task.spec else (),
        policy=policy,
    )
    return ast.Task(
        span=task.span, keys=task.keys, extra=task.extra, label=task.label, kind=task.kind, desc=task.desc, spec=spec
    )


def rewritten_block(block: ast.Choose | ast.Repeat, arguments: Arguments) -> ast.Choose | ast.Repeat:
    """Put arguments into a block's own conditions; its bodies are expanded on their own."""
    if isinstance(block, ast.Repeat):
        when = arguments.in_guard(block.when)
        return ast.Repeat(span=block.span, keys=block.keys, word=block.word, when=when, max=block.max, do=block.do)
    return ast.Choose(
        span=block.span, keys=block.keys, choose=tuple(_branch(branch, arguments) for branch in block.choose)
    )


def _branch(branch: ast.Branch, arguments: Arguments) -> ast.Branch:
    when = arguments.in_guard(branch.when)
    return ast.Branch(span=branch.span, keys=branch.keys, when=when, then=branch.then, else_=branch.else_)


def _spec(spec: ast.TaskSpec | None, arguments: Arguments, label: Callable[[str], str]) -> ast.TaskSpec | None:
    if spec is None:
        return None
    policy = _policy(spec.policy, arguments, label) if spec.policy else None
    return ast.TaskSpec(span=spec.span, keys=spec.keys, extra=arguments.in_entries(spec.extra), policy=policy)


def _policy(policy: ast.TaskPolicy, arguments: Arguments, label: Callable[[str], str]) -> ast.TaskPolicy:
    rules = None if policy.rules is None else tuple(_rule(rule, arguments, label) for rule in policy.rules)
    return ast.TaskPolicy(
        span=policy.span,
        keys=policy.keys,
        mode=policy.mode,
        on_unmatched=policy.on_unmatched,
        before=policy.before,
        after=policy.after,
        finally_=policy.finally_,
        rules=rules,
    )


def _rule(rule: ast.PolicyRule, arguments: Arguments, label: Callable[[str], str]) -> ast.PolicyRule:
    then = _then(rule.then, arguments, label) if rule.then else None
    otherwise = rule.else_
    if otherwise and otherwise.then:
        renamed = _then(otherwise.then, arguments, label)
        otherwise = ast.RuleElse(span=otherwise.span, keys=otherwise.keys, then=renamed)
    when = arguments.in_guard(rule.when)
    return ast.PolicyRule(span=rule.span, keys=rule.keys, when=when, then=then, else_=otherwise)


def _then(then: ast.Then, arguments: Arguments, label: Callable[[str], str]) -> ast.Then:
    return ast.Then(
        span=then.span,
        keys=then.keys,
        do=then.do,
        attempts=then.attempts,
        backoff=then.backoff,
        delay=arguments.in_guard(then.delay),
        to=_renamed(then.to, label),
        set_iter=_patch(then.set_iter, arguments),
        set_ctx=_patch(then.set_ctx, arguments),
    )


def _renamed(to: Scalar | None, label: Callable[[str], str]) -> Scalar | None:
    return None if to is None else scalar(to.span, label(to.text))


def _patch(patch: nodes.Mapping | None, arguments: Arguments) -> nodes.Mapping | None:
    return None if patch is None else nodes.Mapping(patch.span, arguments.in_entries(patch.entries))
