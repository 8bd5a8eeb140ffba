from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlvm.language.scopes import TemplatePosition


class SecretStored(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "`set_ctx` or `set_iter` stores a secret, or a value derived from one."
    why = (
        "The event log records every patch, and the log and its backups outlive the execution. Masking replaces the "
        "secret itself, but not every value that is derived from it."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: sync, path: billing/sync}
      keychain:
        - {name: billing_api, kind: secret_manager}
      workflow:
    -   - step: login
    +   - step: fetch
          tool:
    -       - remember:
    -           kind: noop
    -           spec:
    -             policy:
    -               rules:
    -                 - else:
    -                     then: {do: continue, set_ctx: {bearer: "Bearer {{ keychain.billing_api }}"}}
    +       - invoices: {kind: http, url: "https://billing.example.com/invoices", auth: billing_api}
    """
    covers = ("S45", "step spec §2.1")

    def check(self, model: Model) -> Findings:
        for read in model.secret_reads:
            if read.site.position is not TemplatePosition.TASK_PATCH:
                continue
            target = read.site.role.replace("set_", "", 1)
            yield self.finding(
                read.span,
                f"the secret `{read.text}` would be stored as `{target}`, and in the event log",
                "do not store it: let the task that needs it read it, through `auth`, a header or a connection input",
            )
