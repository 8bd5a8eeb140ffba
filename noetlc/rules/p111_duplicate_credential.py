from noetlc.rules.rule import Findings, Model, Related, Rule, Severity


class DuplicateCredential(Rule):
    severity = Severity.ERROR
    summary = "Two keychain entries have the same name."
    why = "For a task that names the credential it is undefined which of the two it gets."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      keychain:
        - {name: pg, kind: postgres_credential}
    -   - {name: pg, kind: postgres_credential}
      workflow:
        - step: start
          tool: {kind: postgres, auth: pg, command: "SELECT 1"}
    """
    covers = ("S44",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for credential in model.playbook.keychain or ():
            if credential.name is None or model.credentials[credential.name.text] is credential:
                continue
            first = model.credentials[credential.name.text].name
            yield self.finding(
                credential.name.span,
                f"the keychain already has an entry `{credential.name.text}`",
                "rename one of the two, and the tasks that use it",
                related=[Related(first.span, "the first one is here")] if first else (),
            )
