from noetlc.rules.rule import Findings, Model, Rule, Severity, migration_fix

_SHOWN = 3


class OtherSpelling(Rule):
    severity = Severity.NOTE
    summary = "A file uses other spellings of inputs than the canonical ones. One note for each file."
    why = "Both spellings have the same meaning. Documentation, findings and `noetlc canon` use the canonical one."
    example = """
      - step: fetch
        tool:
    -     - get: {kind: http, endpoint: "https://example.com"}
    +     - get: {kind: http, url: "https://example.com"}
    """
    covers = ("S6",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        found = [item for item in model.respellings if not (item.is_misplaced or item.is_knob or item.is_retry)]
        pairs = list(dict.fromkeys((item.written, item.canonical) for item in found))
        if not pairs:
            return
        shown = ", ".join(f"`{written}` is `{canonical}`" for written, canonical in pairs[:_SHOWN])
        rest = f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
        first = found[0]
        yield self.finding(
            first.span,
            f"this file uses other spellings: {shown}{rest}",
            f"write `{first.canonical}`; `noetlc canon` prints the whole file in canonical spelling",
            fix=migration_fix(model),
        )
