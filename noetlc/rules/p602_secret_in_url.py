from noetlc.analysis.taint import becomes_url
from noetlc.rules.rule import Findings, Model, Rule, Severity


class SecretInUrl(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A URL or its query parameters contain a secret."
    why = (
        "URLs are recorded in access logs, in proxies and in error messages. A secret in a URL must be considered "
        "public."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: weather, path: demo/weather}
      keychain:
        - {name: weather_api, kind: secret_manager}
      workflow:
        - step: fetch
          tool:
            - today:
                kind: http
    -           url: "https://api.example.com/today?key={{ keychain.weather_api.key }}"
    +           url: https://api.example.com/today
    +           headers: {x-api-key: "{{ keychain.weather_api.key }}"}
    """
    covers = ("S45",)

    def check(self, model: Model) -> Findings:
        for read in model.secret_reads:
            if becomes_url(read.site):
                yield self.finding(
                    read.span,
                    f"the secret `{read.text}` becomes part of a URL, through `{read.site.input}`",
                    "send it in a header, or give `auth: <keychain entry>` and leave it to the tool",
                )
