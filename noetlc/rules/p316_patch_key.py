from noetlc.analysis.model import Owner, patches, thens
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Scalar
from noetlvm.language.names import NAME_CHARS_MAX, is_key
from noetlvm.language.scopes import given_fields

_GIVEN = given_fields("iter")


class PatchKey(Rule):
    severity = Severity.ERROR
    summary = "A patch writes a key that is not a plain name, or that belongs to the loop."
    why = (
        "A patch replaces whole values under plain names. The key `a.b` would contain a dot, and no template could "
        "read it. `iter.index`, `iter.parent` and the iterator belong to the loop."
    )
    example = """
      - step: begin
        tool:
          - init:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: {do: continue, set_ctx: {page.number: 1}}
    +                   then: {do: continue, set_ctx: {page: {number: 1}}}
    """
    covers = ("S18", "formal §7.1", "step spec §6.3")

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            given = _given(view.owner)
            for _, then in thens(view.task):
                for patch, entry in patches(then):
                    if not is_key(entry.key.text):
                        yield self._not_a_name(patch, entry.key)
                    elif patch == "set_iter" and entry.key.text in given:
                        yield self._is_given(entry.key)

    def _not_a_name(self, patch: str, key: Scalar) -> Finding:
        if len(key.text) > NAME_CHARS_MAX:
            message = f"a key of `{patch}` has up to {NAME_CHARS_MAX:,} characters, and this has {len(key.text):,}"
            return self.finding(key.span, message, "write a shorter name")
        head, dot, tail = key.text.partition(".")
        nested = f"to store a mapping write `{head}: {{ {tail}: … }}`, which replaces all of `{head}`"
        is_nested = bool(dot) and head.isidentifier() and tail.isidentifier()
        help = nested if is_nested else "write a name of letters, digits and `_`, without template marks"
        return self.finding(key.span, f"`{key.text}` is not a plain name, so `{patch}` cannot write it", help)

    def _is_given(self, key: Scalar) -> Finding:
        return self.finding(
            key.span,
            f"`iter.{key.text}` belongs to the loop, and `set_iter` cannot write it",
            f"write another name, such as `my_{key.text}`",
        )


def _given(owner: Owner) -> frozenset[str]:
    """Return what the innermost loop provides under `iter`."""
    iterator = owner.loops[-1].iterator if owner.loops else None
    return _GIVEN | {iterator.text} if iterator else _GIVEN
