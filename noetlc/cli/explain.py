"""`noetlc explain`: a rule's page, from the rule's own file, or the meaning of another code."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated

from noetlc.compile import COMPILER_CODES
from noetlc.finding import current_codes
from noetlc.report.pages import page, page_json, rule_list
from noetlc.rules.catalogue import all_rules
from noetlvm.bytecode.codec.malformed import MALFORMED
from noetlvm.bytecode.verify.operands import INVALID
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.nearest import suggestion

if TYPE_CHECKING:
    from noetlc.rules.rule import Rule


def explain(
    name: Annotated[
        str | None, Argument(metavar="RULE", help="A code (P103, V039) or a name. Default: list all rules.")
    ] = None,
    whole_pages: Annotated[bool, Option("--all", help="Print the pages of all rules.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> int:
    """Explain a rule: the reason, a wrong example and a corrected one.

    \b
    Examples:
      noetlc explain              all rules, one line each
      noetlc explain P103         one rule's page
      noetlc explain V039         what a code of the verifier means
      noetlc explain --all --json every page, for other tools
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    if name is not None and (meaning := _meaning(name.upper())):
        print(json_module.dumps({"code": name.upper(), "summary": meaning}) if json else f"{name.upper()}: {meaning}")
        return SUCCESS
    rules = all_rules() if name is None else (_find(name),)
    if json:
        pages = [page_json(rule) for rule in rules]
        text = json_module.dumps(pages if name is None else pages[0], indent=2) + "\n"
    elif name is None and not whole_pages:
        text = rule_list(rules)
    else:
        text = "\n\n".join(page(rule) for rule in rules)
    print(text, end="")
    return SUCCESS


def _meaning(code: str) -> str:
    """Return the meaning of a code of the compiler, the decoder or the verifier; empty if it is none of those."""
    if code[:1] not in ("C", "M", "V"):
        return ""
    meanings: dict[str, str] = {**COMPILER_CODES, **{str(key): text for key, text in MALFORMED.items()}, **INVALID}
    return meanings.get(code, "")


def _find(name: str) -> type[Rule]:
    """Return the rule with this code or name, in any case."""
    known = {key: rule for rule in all_rules() for key in (rule.code, rule.name)}
    for key, rule in known.items():
        if key.casefold() == name.casefold() or current_codes(name.upper()) == (key,):
            return rule
    raise CommandError(f"no rule is called `{name}`.{suggestion(name, known)} `noetlc explain` lists all rules")
