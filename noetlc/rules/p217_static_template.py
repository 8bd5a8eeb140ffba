from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.template_ast import Data
from noetlvm.language.keychain import FORMS, PROVIDERS
from noetlvm.language.scopes import TemplatePosition

_HELP = {
    "workload": "write a value; build texts from `workload` where they are used, in a task's inputs",
    "keychain": "write the name itself: credentials are resolved before anything else exists",
    "executor": "write a value: these settings are read before anything else exists",
}


class StaticTemplate(Rule):
    severity = Severity.WARNING
    summary = "A template in `workload`, `keychain` or `executor` is not evaluated."
    why = (
        "These sections are read before any value exists that a template could read. Tasks get the template itself "
        "as text."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: { name: example, path: examples/example }
      workload:
        host: example.com
    -   api_url: "https://{{ workload.host }}/api"
      workflow:
        - step: start
    -     tool: { kind: http, url: "{{ workload.api_url }}/items" }
    +     tool: { kind: http, url: "https://{{ workload.host }}/api/items" }
    """
    covers = ("formal §2.1", "step spec §6.1", "S37", "S44")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        plugins = [entry.span for entry in model.playbook.keychain or () if _is_of_plugin(entry)]
        for site, template in model.template_sites:
            if site.position is not TemplatePosition.STATIC or any(
                span.start <= site.scalar.span.start < span.end for span in plugins
            ):
                continue
            if any(not isinstance(part, Data) for part in template.parts):
                where = model.label_paths.at(site.scalar.span.start) or site.role
                yield self.finding(
                    site.scalar.span,
                    f"the template in `{where}` is not evaluated: it is used as text",
                    _HELP.get(site.role.partition(".")[0], "write a value"),
                )


def _is_of_plugin(entry: ast.Credential) -> bool:
    """Return whether a plugin resolves an entry: the plugin interprets the settings."""
    provider = entry.get_extra("provider")
    if isinstance(provider, Scalar) and provider.text not in PROVIDERS:
        return True
    return entry.kind is not None and entry.kind.text not in FORMS and entry.kind.text not in PROVIDERS
