import re
from collections.abc import Iterator

from noetlc.analysis.model import Site, patches, thens
from noetlc.rules.rule import Edit, Finding, Findings, Fix, Model, Rule, Severity
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, Sequence
from noetlc.syntax.span import Span
from noetlvm.language.scopes import NAMESPACES, TemplatePosition
from noetlvm.language.tool_kinds import find_kind

_NAMESPACES = "|".join(sorted(NAMESPACES, key=len, reverse=True))
_PATH = rf"(?:{_NAMESPACES})(?:\.\w+)+"
_WHOLE_PATH = re.compile(_PATH)
_BRACES = re.compile(rf"(?<![{{$%#@])\{{\s*(?P<path>{_PATH})\s*\}}+")
_SIGN = re.compile(r"[$%#@]\{|\$|<%|\[\[")
_SIGNS = re.compile(
    rf"""
    [$%#@]\{{\s*(?P<braced>{_PATH})\s*\}}(?!\}})       # ${{ctx.x}} as in a shell
    | (?<![\w$\\])\$(?P<bare>{_PATH})                 # $ctx.x
    | <%=?\s*(?P<tag>{_PATH})\s*%>                    # <% ctx.x %>
    | \[\[\s*(?P<brackets>{_PATH})\s*\]\]             # [[ ctx.x ]]
    """,
    re.VERBOSE,
)
_LENGTH = re.compile(r"\$\{#(?!\s).*?#\}", re.DOTALL)
"""The length of a variable in a shell, `${#name}`, and what it makes a comment of."""
_DOLLAR_BEFORE = re.compile(r"\$(?=\{\{[^{}]*\}\}\s*\Z)")


class BrokenTemplate(Rule):
    severity = Severity.WARNING
    summary = "Text looks like a template but is not one, or the other way round."
    why = (
        "The text is used as it is written: a request goes to `/items/{ctx.id}`, with the braces, and fails or "
        "returns wrong data."
    )
    example = """
      - step: start
        tool:
    -     - fetch: { kind: http, url: "https://example.com/items/{ctx.id}" }
    +     - fetch: { kind: http, url: "https://example.com/items/{{ ctx.id }}" }
    """
    covers = ("formal §3.1", "S8")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for site in model.sites:
            text = site.scalar.text
            if site.is_guard or site.position is TemplatePosition.STATIC:
                continue
            for found in _broken(site, text):
                yield self._finding(model, site, found)
            for found in _LENGTH.finditer(text):
                message = "`{#` starts a template comment: everything up to `#}` is removed"
                help = "put `{% raw %}` before and `{% endraw %}` after it"
                yield self.finding(model.place(site, Span(found.start() + 1, found.start() + 3)), message, help)
        for key in _unquoted(model):
            help = f'write `"{{{{ {key.text} }}}}"`, with quotes around it'
            yield self.finding(key.span, f"`{{ {key.text} }}` is a mapping with a key and no value", help)

    def _finding(self, model: Model, site: Site, found: re.Match[str]) -> Finding:
        place = model.place(site, Span(*found.span()))
        if found[0] == "$":
            fix = Fix("remove the `$`", (Edit(place, ""),), safe=False)
            return self.finding(place, "the `$` before `{{` stays in the text", "remove the `$`", fix=fix)
        written = f"{{{{ {next(path for path in found.groups() if path)} }}}}"
        fix = Fix(f"write `{written}`", (Edit(place, written),), safe=False)
        message = f"`{found[0]}` is not a template: it is used as written"
        return self.finding(place, message, f"write `{written}`", fix=fix)


def _broken(site: Site, text: str) -> Iterator[re.Match[str]]:
    if "{" in text and _language(site) != "python":
        yield from _BRACES.finditer(text)
    if _SIGN.search(text) and _language(site) is None:
        yield from _SIGNS.finditer(text)
        dollar = _DOLLAR_BEFORE.match(text)
        if dollar:
            yield dollar


def _unquoted(model: Model) -> Iterator[Scalar]:
    """Yield keys that are paths: YAML reads `{ ctx.x }` without quotes as a mapping."""
    for value in _values(model):
        waiting = [value]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Sequence):
                waiting.extend(node.items)
            elif isinstance(node, Mapping):
                waiting.extend(entry.value for entry in node.entries)
                yield from (entry.key for entry in node.entries if _is_path_alone(entry))


def _is_path_alone(entry: MappingEntry) -> bool:
    is_empty = isinstance(entry.value, Scalar) and entry.value.value is None
    return is_empty and _WHOLE_PATH.fullmatch(entry.key.text) is not None


def _values(model: Model) -> Iterator[Node]:
    for view in model.tasks:
        yield from (entry.value for entry in view.task.extra)
        yield from (entry.value for _, then in thens(view.task) for _, entry in patches(then))
    for step in model.steps:
        for arc in step.arcs:
            if arc.args:
                yield arc.args


def _language(site: Site) -> str | None:
    """Return the language that the text is read as; there, characters such as `$` may have a meaning of their own."""
    kind = find_kind(site.task.kind) if site.task and site.task.kind else None
    declared = kind.input(site.role) if kind else None
    return declared.language if declared and declared.language != "url" else None
