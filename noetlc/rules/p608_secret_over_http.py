import re
from collections.abc import Iterator

from noetlc.analysis.model import TaskView
from noetlc.rules.rule import Edit, Finding, Findings, Fix, Model, Related, Rule, Severity
from noetlc.syntax import template_ast as t
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.scalar_offsets import span_in_file
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template
from noetlvm.language.tool_kinds import find_kind

_SCHEME = "http://"
_PLAIN = re.compile(r"\s*(http://)(?!localhost\b|127\.|\[::1\]|0\.0\.0\.0\b)", re.IGNORECASE)


class SecretOverHttp(Rule):
    severity = Severity.WARNING
    summary = "A task sends a credential to a URL that begins with `http://`."
    why = "Without TLS everyone on the network path can read the credential, and use it until it is revoked."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: sync, path: crm/sync}
      keychain:
        - {name: crm_api, kind: secret_manager}
      workflow:
        - step: fetch
          tool:
    -       - contacts: {kind: http, url: "http://crm.example.com/contacts", auth: crm_api}
    +       - contacts: {kind: http, url: "https://crm.example.com/contacts", auth: crm_api}
    """
    covers = ("S45",)

    def check(self, model: Model) -> Findings:
        senders = {id(read.site.task.task) for read in model.secret_reads if read.site.task and read.site.input}
        for view in model.tasks:
            if id(view.task) in senders or view.task.get_extra("auth") is not None:
                for url in _urls(view):
                    yield from self._check(model, url)

    def _check(self, model: Model, url: Scalar) -> Findings:
        plain = _PLAIN.match(url.text)
        if plain:
            yield self._finding(model, url, Span(*plain.span(1)), ())
            return
        default = _workload_default(model, url)
        plain = _PLAIN.match(default.text) if default else None
        if default and plain:
            at = span_in_file(model.source.text, default, Span(*plain.span(1)))
            yield self._finding(model, url, Span(0, len(url.text)), (Related(at, "its default begins with `http://`"),))

    def _finding(self, model: Model, url: Scalar, span: Span, related: tuple[Related, ...]) -> Finding:
        at = span_in_file(model.source.text, url, span)
        scheme = related[0].span if related else at
        is_literal = model.source.text[scheme.start : scheme.end].lower() == _SCHEME
        fix = Fix("write `https://`", (Edit(scheme, "https://"),), safe=False) if is_literal else None
        return self.finding(
            at,
            "the credential of the task is sent over plain HTTP, where everyone on the network path can read it",
            "write `https://`; only a server on the same machine needs no TLS",
            related=related,
            fix=fix,
        )


def _urls(view: TaskView) -> Iterator[Scalar]:
    kind = find_kind(view.kind) if view.kind else None
    for item in kind.inputs if kind else ():
        value = view.task.get_extra(item.name) if item.language == "url" else None
        if isinstance(value, Scalar):
            yield value


def _workload_default(model: Model, url: Scalar) -> Scalar | None:
    """Return the default of `workload.x` where a URL begins with it."""
    parts = parse_template(url.text).parts if url.is_template else ()
    first = parts[0] if parts else None
    if not isinstance(first, t.Output) or model.playbook.workload is None:
        return None
    match first.expression:
        case t.Getattr(node=t.Name(name="workload"), name=key):
            default = model.playbook.workload.get(key)
            return default if isinstance(default, Scalar) else None
    return None
