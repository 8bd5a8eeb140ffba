import re

from noetlc.analysis.credentials import NamedEntry, entries_read, implied_keychain, named_entries
from noetlc.rules.rule import Edit, Finding, Findings, Fix, Model, Rule, Severity, migration_fix
from noetlc.syntax.span import Span

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")


class UndeclaredCredential(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "`auth` or `keychain.<name>` uses a credential that `keychain` does not declare."
    why = (
        "Credentials are resolved before the first step, from the declarations at the root. An undeclared credential "
        "is not available when the task needs it. In a playbook without a `keychain` section this is a warning, "
        "because each credential is then looked up in the form that its tool needs."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      keychain:
        - {name: pg_main, kind: postgres_credential}
      workflow:
        - step: start
          tool:
    -       - save: {kind: postgres, auth: pg_man, command: "SELECT 1"}
    -       - check: {kind: postgres, auth: pg_main, command: "SELECT 1"}
    +       - save: {kind: postgres, auth: pg_main, command: "SELECT 1"}
    """
    covers = ("brief §2.2", "step spec §2.1", "S44")

    def check(self, model: Model) -> Findings:
        if any((problem.object, problem.key) == ("playbook", "keychain") for problem in model.problems):
            return  # a keychain that cannot be read is reported as such
        implied = implied_keychain(model.playbook)
        if implied:
            yield self._no_keychain(model, list(implied.values()))
        named = [(used.span, used.name) for used in named_entries(model.playbook)]
        missing: dict[str, list[Span]] = {}
        for span, name in sorted([*named, *entries_read(model)]):
            if name not in model.credentials and name not in implied:
                missing.setdefault(name, []).append(span)
        for name, spans in missing.items():
            others = f", and it is used {_times(len(spans))}" if len(spans) > 1 else ""
            meant = model.suggestions.did_you_mean(name, model.credentials)
            yield self.finding(
                spans[0],
                f"the keychain has no entry `{name}`{others}",
                meant or f"declare it: `keychain: [{{name: {name}, kind: …}}]`",
                fix=None if meant else migration_fix(model),
            )

    def _no_keychain(self, model: Model, implied: list[NamedEntry]) -> Finding:
        """Report once that nothing is declared: the entries are looked up as what the tasks need."""
        first, more = implied[0], len(implied) - 1
        others = f", nor {more} other{'s' if more > 1 else ''}" if more else ""
        listed = ", ".join(f"{{name: {used.name}, kind: {used.form}}}" for used in implied[:3])
        return self.finding(
            first.span,
            f"no `keychain` declares `{first.name}`{others}: it is looked up as a `{first.form}`",
            f"declare it: `keychain: [{listed}{', …' if more > 2 else ''}]`",
            severity=Severity.WARNING,
            fix=_declared(model, implied),
        )


def _declared(model: Model, implied: list[NamedEntry]) -> Fix | None:
    """Return the fix that writes the keychain which the canonical form has, before the first section after it."""
    keys = model.playbook.keys
    after = min((keys[key] for key in ("executor", "workload", "workflow", "workbook") if key in keys), default=None)
    if after is None or model.source.position(after.start).column != 1:
        return None
    lines = [f"  - {{ name: {used.name}, kind: {used.form} }}" for used in implied if _PLAIN.fullmatch(used.name)]
    text = "\n".join(["keychain:", *lines, ""])
    is_whole = len(lines) == len(implied)
    return (
        Fix("declare the credentials that tasks use", (Edit(Span(after.start, after.start), text),), safe=True)
        if is_whole
        else None
    )


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"
