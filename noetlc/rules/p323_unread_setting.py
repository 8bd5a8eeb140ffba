from collections.abc import Mapping

from noetlc.analysis.placement import RESULT, names_pool
from noetlc.analysis.routers import NEXT_MODE
from noetlc.analysis.spec_keys import keys_of, nearby_place, other_place, place_of_word
from noetlc.rules.p322_reserved_key import RESERVED_SETTINGS
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import MappingEntry
from noetlc.syntax.tree import structs
from noetlvm.language.tool_kinds import NO_TIME_KIND, find_kind
from noetlvm.nearest import nearest

_TITLES: Mapping[type[ast.Struct], str] = {
    ast.ExecutorSpec: "`executor.spec`",
    ast.StepSpec: "a step's `spec`",
    ast.LoopSpec: "a loop's `spec`",
    ast.RouterSpec: "`next.spec`",
}


class UnreadSetting(Rule):
    severity = Severity.WARNING
    summary = "A key of the `spec` of the executor, a step, a loop or `next` has no effect."
    why = (
        "The setting is ignored: a gate admits everything, a limit does not apply. This is an error if the key "
        "belongs elsewhere or is similar to a known one."
    )
    example = """
      - step: fetch
    -   spec: {admit: {rules: [{else: {then: {allow: false}}}]}}
    +   spec: {policy: {admit: {rules: [{else: {then: {allow: false}}}]}}}
        tool:
          - get: {kind: http, url: "https://example.org/items"}
    """
    covers = ("S38", "S63")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        kinds = {view.kind: find_kind(view.kind) for view in model.tasks if view.kind}
        settings = {setting.name for kind in kinds.values() if kind for setting in kind.settings}
        is_certain = all(kind is not None and not kind.open for name, kind in kinds.items() if name != NO_TIME_KIND)
        for struct in structs(model.playbook):
            if type(struct) not in _TITLES:
                continue
            own = settings if not isinstance(struct, ast.RouterSpec) else set()
            for entry in struct.extra:
                is_reserved = isinstance(struct, ast.ExecutorSpec) and entry.key.text in RESERVED_SETTINGS
                if not is_reserved and not _is_read(entry, own, struct):
                    yield from self._unread(entry, struct, own, is_certain)
                elif own is settings:
                    yield from self._unread_by_kind(entry, _TITLES[type(struct)])

    def _unread_by_kind(self, entry: MappingEntry, title: str) -> Findings:
        """Yield the settings under a kind's name in a `spec` further out that the kind does not have."""
        kind = find_kind(entry.key.text)
        if kind is None or kind.open or not kind.settings or not isinstance(entry.value, nodes.Mapping):
            return
        known = [setting.name for setting in kind.settings]
        for inner in entry.value.entries:
            name = inner.key.text
            if name not in known:
                meant = nearest(name, known)
                listed = ", ".join(f"`{one}`" for one in known)
                help = f"did you mean `{meant}`?" if meant else f"`{kind.name}` has {listed}"
                message = f"`{name}` has no effect under `{kind.name}` in {title}"
                severity = Severity.ERROR if meant else Severity.WARNING
                yield self.finding(inner.key.span, message, help, severity=severity)

    def _unread(self, entry: MappingEntry, struct: ast.Struct, settings: set[str], is_certain: bool) -> Findings:
        name, kind = entry.key.text, type(struct)
        known = {*keys_of(kind), *settings}
        meant = nearest(name, sorted(known - struct.keys.keys()))
        message = f"`{name}` has no effect in {_TITLES[kind]}"
        near = nearby_place(name, kind) or place_of_word(name)
        if place := near or (not meant and is_certain and other_place(name)):
            yield self.finding(entry.key.span, message, f"write it as {place}", severity=Severity.ERROR)
        elif meant:
            yield self.finding(entry.key.span, message, f"did you mean `{meant}`?", severity=Severity.ERROR)
        elif is_certain:
            yield self.finding(entry.key.span, message, "remove it, or move it to where it has a meaning")


def _is_read(entry: MappingEntry, settings: set[str], struct: ast.Struct) -> bool:
    """True for a setting of some task inside, for those of one kind under its name, and for where work is done."""
    name = entry.key.text
    if isinstance(struct, ast.ExecutorSpec) and name == RESULT:
        return True
    if isinstance(struct, ast.StepSpec) and name == NEXT_MODE:
        return True  # P904 says what it was
    if names_pool(entry) and not isinstance(struct, ast.RouterSpec):
        return True
    is_kind = find_kind(name) is not None and not place_of_word(name)
    return name in settings or (not isinstance(struct, ast.RouterSpec) and is_kind)
