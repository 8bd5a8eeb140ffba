from noetlc.analysis.taint import SecretRead, becomes_url, declared_input
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity


class SecretInInput(Rule):
    severity = Severity.WARNING
    summary = "A secret flows into a task input that is not meant for secrets."
    why = (
        "Inputs such as SQL, commands, arguments and bodies are recorded, logged, or visible to other programs on the "
        "machine. Only `auth`, headers and connection inputs are masked."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: backup, path: ops/backup}
      keychain:
        - {name: vault_key, kind: secret_manager}
      workflow:
        - step: backup
          tool:
    -       - encrypt: {kind: shell, command: [gpg, --passphrase, "{{ keychain.vault_key }}", -c, dump.sql]}
    +       - encrypt:
    +           kind: http
    +           method: POST
    +           url: https://vault.example.com/encrypt
    +           auth: vault_key
    +           json: {file: dump.sql}
    """
    covers = ("S45",)

    def check(self, model: Model) -> Findings:
        for read in model.secret_reads:
            declared = declared_input(read.site)
            if declared and not declared.takes_secret and not becomes_url(read.site):
                yield self._finding(read)

    def _finding(self, read: SecretRead) -> Finding:
        kind = read.site.task.kind if read.site.task else ""
        return self.finding(
            read.span,
            f"the secret `{read.text}` flows into `{read.site.input}` of `{kind}`, which is not masked",
            "pass secrets only through `auth`, headers or connection inputs",
        )
