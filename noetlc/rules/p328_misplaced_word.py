from noetlc.analysis.spec_keys import PIPELINE_WORDS, place_of_word
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import MappingEntry
from noetlvm.language.tool_kinds import NO_TIME_KIND, find_kind

_SETTING_OF_NONE = "timeout"
"""A setting of all kinds but `noop`, which takes no time."""


class MisplacedWord(Rule):
    severity = Severity.ERROR
    summary = "A word of the language stands among the inputs of a task, or in the `spec` of an arc."
    why = (
        "The words of the language and of its older dialects are inputs of no tool, also where a tool takes any input. "
        "A policy or a condition there is never read: one wrong indentation, and the playbook continues as if there "
        "were none."
    )
    example = """
      - step: decide
        tool:
          - check:
              kind: noop
    -         policy:
    -           rules:
    -             - else:
    -                 then: {do: fail}
    +         spec:
    +           policy:
    +             rules:
    +               - else:
    +                   then: {do: fail}
    """
    covers = ("S90", "S63", "brief §1.1", "brief §12", "step spec §12")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            kind = find_kind(view.kind) if view.kind else None
            for entry in view.task.extra if kind is None or kind.open else ():
                is_declared = kind is not None and kind.input(entry.key.text) is not None
                if not is_declared and entry.key.text not in PIPELINE_WORDS:
                    yield from self._misplaced(entry, f"an input of `{view.label}`", view.kind)
            for entry in view.task.settings if kind is None else ():
                yield from self._misplaced(entry, f"a setting of `{view.label}`")
        for step in model.steps:
            for arc in step.arcs:
                for entry in arc.spec.entries if arc.spec else ():
                    if entry.key.text != "policy":  # P304 says where directives belong
                        yield from self._misplaced(entry, "a setting of an arc")

    def _misplaced(self, entry: MappingEntry, what: str, kind: str = "") -> Findings:
        word = entry.key.text
        place = place_of_word(word)
        if kind == NO_TIME_KIND and word == _SETTING_OF_NONE:
            place = "`spec.timeout` of a task that takes time"
        if place:
            yield self.finding(
                entry.key.span, f"`{word}` is not {what}: it is a word of the language", f"write it as {place}"
            )
