from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity

API_VERSION = "noetl.io/v2"


class ApiVersion(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "`apiVersion` is not `noetl.io/v2`."
    why = "The version defines the language of the file. Guessing it could change the meaning of the file."
    example = """
    - apiVersion: noetl.io/v1
    + apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("formal §2.1", "S2")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        version = model.playbook.api_version
        if version and version.text != API_VERSION:
            fix = Fix(f"write `{API_VERSION}`", (Edit(version.span, API_VERSION),), safe=False)
            message = f"`apiVersion` must be `{API_VERSION}`, not `{version.text}`"
            yield self.finding(version.span, message, f"write `apiVersion: {API_VERSION}`", fix=fix)
