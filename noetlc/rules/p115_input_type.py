from noetlc.analysis.inputs import fits, inputs, typed_tasks
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import MappingEntry, Node, Scalar, plain, scalars
from noetlc.syntax.playbook_parser import describe, one_of
from noetlc.syntax.span import Span
from noetlvm.language.keychain import ShapeError, read_auth
from noetlvm.language.tool_kinds import Input
from noetlvm.nearest import did_you_mean

_TITLES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


class InputType(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "An input does not have the required type, or is not one of the allowed words."
    why = (
        "The tool refuses it on every call. A template is allowed for any type, because its value is not known "
        "before the run."
    )
    example = """
      - step: fetch
        tool:
    -     - get: {kind: http, method: FETCH, url: [https, example.com]}
    +     - get: {kind: http, method: GET, url: "https://example.com"}
    """
    covers = ("S6",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for view, kind in typed_tasks(model):
            auth = view.task.get_extra("auth")
            if auth is not None and kind.takes_auth and kind.input("auth") is None:
                yield from self._auth(auth)
            for entry in inputs(view):
                declared = kind.input(entry.key.text)
                if declared is not None:
                    yield from self._check(entry, declared)

    def _auth(self, auth: Node) -> Findings:
        if any(scalar.is_template for scalar in scalars(auth)):
            return
        try:
            read_auth(plain(auth))
        except ShapeError as problem:
            place = auth.span if isinstance(auth, Scalar) else Span(auth.span.start, auth.span.start + 1)
            yield self.finding(place, f"`auth`: {problem}", "write `auth: <name of a keychain entry>`")

    def _check(self, entry: MappingEntry, declared: Input) -> Findings:
        value = entry.value
        name = entry.key.text
        if not fits(value, declared.types):
            wanted = one_of(_TITLES[type] for type in declared.types)
            at = value.span if isinstance(value, Scalar) and value.text else entry.key.span
            at = at if isinstance(value, Scalar) else Span(value.span.start, value.span.start + 1)
            yield self.finding(
                at, f"`{name}` must be {wanted}, not {describe(value)}", f"write {wanted}, or a template that gives one"
            )
        elif declared.choices and isinstance(value, Scalar) and not _is_choice(value, declared):
            listed = one_of(f"`{choice}`" for choice in declared.choices)
            meant = did_you_mean(value.text, declared.choices)
            yield self.finding(
                value.span, f"`{name}` must be {listed}, not `{value.text}`", meant or "write one of them"
            )


def _is_choice(value: Scalar, declared: Input) -> bool:
    return value.is_template or value.text in declared.choices or value.text.upper() in declared.choices
