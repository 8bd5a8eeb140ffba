from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlvm.language.scopes import NAMESPACES, VISIBLE, TemplatePosition

_SERVER_SIDE = frozenset({TemplatePosition.ADMIT, TemplatePosition.ARC_WHEN, TemplatePosition.ARC_ARGS})

_ON_SERVER: dict[str, str] = {
    "keychain": "secrets stay inside tasks: use it in a task, as `auth` or in `headers`",
    "iter": "there is no iteration here: read `event.result`, or store the value with `set_ctx`",
    "outcome": "read `event.status`, `event.result` or `event.error`, or store the value with `set_ctx` in the task",
    "_prev": "read `event.result`, the result of the whole step",
    "_task": "the tasks have ended here: store the value with `set_ctx`",
    "_attempt": "the tasks have ended here: store the value with `set_ctx`",
}
_ON_WORKER: dict[str, str] = {
    "event": "it exists in arcs and admission rules: pass it with the arc's `args` and read `args.…` here",
    "outcome": "it exists in the rules of the task's own policy: store it there with `set_iter` or `set_ctx`, or read "
    "`_prev`, the result of the task before",
    "keychain": "the server evaluates this, and secrets stay inside tasks: put the collection in `workload` or `ctx`",
    "_prev": "no task has run yet: read `args`, `ctx` or `workload`",
    "_task": "no task has run yet",
    "_attempt": "no task has run yet",
}


class NameNotVisible(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A template reads a name that does not exist at its position."
    why = (
        "The visible names depend on the position. Arcs see the boundary event but no secrets and no iteration; "
        "tasks see secrets and the iteration but no event. Any other name is undefined, and an undefined guard is "
        "false."
    )
    example = """
      - step: start
        tool:
          - fetch: { kind: http, url: "https://example.com/items" }
        next:
          arcs:
            - step: store
    -         when: "{{ outcome.status == 'ok' }}"
    +         when: "{{ event.name == 'step.done' }}"
      - step: store
        tool: { kind: noop }
    """
    covers = ("formal §3.2", "step spec §4", "S11")

    def check(self, model: Model) -> Findings:
        for reading in model.readings:
            site = reading.site
            for use in reading.names.uses:
                name = use.name
                if reading.is_visible(name) or name not in NAMESPACES or model.definitions.defines(name, site):
                    continue
                yield self.finding(
                    model.place(site, use.node.span),
                    f"`{name}` does not exist in {_a(site.position)}",
                    (_ON_SERVER if site.position in _SERVER_SIDE else _ON_WORKER).get(name) or _offer(site.position),
                )


def _a(position: TemplatePosition) -> str:
    title = position.value
    if title.startswith("`"):
        return title
    return f"{'an' if title[0] in 'aeiou' else 'a'} {title}"


def _offer(position: TemplatePosition) -> str:
    return f"here there are {', '.join(f'`{name}`' for name in sorted(VISIBLE[position]))}"
