"""The JSON Schema of the language, made from `grammar/playbook.lark` and the tool kinds, so that it cannot disagree.

Editors use it to complete and check playbooks while they are written. It covers structure and types, and accepts a
template wherever one may stand; names, expressions and flow stay the linter's business.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from noetlc.syntax.key_descriptions import key_description
from noetlc.syntax.lalr import grammar_text
from noetlc.syntax.playbook_parser import MAY_BE_EMPTY, OBJECTS, REQUIRED, SUGAR, TITLES
from noetlvm.language.keychain import FORMS, PROVIDERS
from noetlvm.language.keychain import PLUGIN_KINDS as PLUGIN_CREDENTIALS
from noetlvm.language.tool_kinds import PLUGIN_KINDS, Input, ToolKind, builtin_kinds, kind_names
from noetlvm.limits import PROFILES

Schema = dict[str, Any]

_TEMPLATE_MARK = r"\{[{%#]"
_TEMPLATE: Schema = {"type": "string", "pattern": _TEMPLATE_MARK}
_TERMINALS: dict[str, Schema] = {
    "STRING": {"type": "string", "not": {"pattern": _TEMPLATE_MARK}},
    "TEMPLATE": _TEMPLATE,
    "INTEGER": {"type": "integer"},
    "DECIMAL": {"type": "number"},
    "BOOLEAN": {"type": "boolean"},
    "MAPPING": {"type": "object"},
    "SEQUENCE": {"type": "array"},
    "ANYTHING": {},
}
_AUTH: Schema = {
    "description": "Name of the keychain entry to authenticate with, or a mapping that names it and how it is used.",
    "type": ["string", "object"],
}
_FIXED = {"apiVersion": "noetl.io/v2", "kind": "Playbook"}
_CONTROL: dict[str, tuple[str, ...]] = {"task_policy": ("rules",), "then": ("do",)}
"""Keys that lint reports with rules of their own; the schema simply requires them."""

_WITHOUT_EFFECT: Schema = {
    "kind": {"description": "Has no effect; the word is `profile`.", "not": {"enum": list(PROFILES)}},
    "requires": {"description": "Has no effect."},
}
"""Keys of `executor` that lint does not report."""

Rules = dict[str, list[list[str]]]


def playbook_schema() -> Schema:
    """Return the schema as JSON data (draft 2020-12)."""
    rules, literals = _grammar_rules()
    defined = (name for name in sorted(rules) if not name.startswith("_") and not name.endswith("_field"))
    definitions = {name: _definition(name, rules, literals) for name in defined if name != "start"}
    for name in ("task", "labelled_task"):
        definitions[name]["allOf"] = [_kind_condition(kind) for kind in builtin_kinds().values()]
        definitions[name]["properties"]["kind"] |= _one_of(_tool_kinds())
    definitions["credential"]["properties"]["kind"] |= _one_of({**FORMS, **PROVIDERS, **PLUGIN_CREDENTIALS}, more=True)
    definitions["executor"]["properties"] |= _WITHOUT_EFFECT
    for key, value in _FIXED.items():
        definitions["playbook"]["properties"][key] |= {"const": value}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "NoETL playbook",
        "$ref": "#/$defs/playbook",
        "$defs": definitions,
    }


def _grammar_rules() -> tuple[Rules, dict[str, str]]:
    """Return each rule's alternatives as symbol names, and the text of each literal terminal."""
    import lark

    grammar = lark.Lark(grammar_text("playbook"), parser="lalr", lexer="basic", keep_all_tokens=True)
    rules: Rules = defaultdict(list)
    for rule in grammar.rules:
        rules[str(rule.origin.name)].append([str(symbol.name) for symbol in rule.expansion])
    literals = {terminal.name: str(terminal.pattern.value) for terminal in grammar.terminals}
    return dict(rules), literals


def _definition(name: str, rules: Rules, literals: dict[str, str]) -> Schema:
    if name == "labelled":
        return _labelled()
    if name in SUGAR:
        return _sugar(name, rules)
    first = rules[name][0][0]
    if first == "LBRACE":
        return _object(name, rules, literals)
    if first == "LSQB":
        return {"type": "array", "items": _ref(_item(name, rules))}
    return _alternatives(rules[name], rules, literals)


def _object(name: str, rules: Rules, literals: dict[str, str]) -> Schema:
    properties: Schema = {}
    others: Schema | bool = False
    for key, value in rules[f"{name}_field"]:
        schema = _symbol(value, rules)
        if key == "KEY":
            others = schema or True
        else:
            word = literals[key]
            schema = {"anyOf": [schema, {"type": "null"}]} if word in MAY_BE_EMPTY else schema
            properties[word] = {**schema, **_described(name, word)}
    schema = {"type": "object", "properties": properties, "additionalProperties": others}
    required = [*REQUIRED.get(name, ()), *_CONTROL.get(name, ())]
    if required:
        schema["required"] = required
    if {"when", "else"} <= properties.keys():
        schema["oneOf"] = [{"required": ["when", "then"]}, {"required": ["else"]}]
    doc = OBJECTS[name].__doc__ if name in OBJECTS else ""
    return {"title": TITLES[name].replace("`", ""), "description": (doc or "").strip(), **schema}


def _described(object: str, key: str) -> Schema:
    text = key_description(object, key)
    return {"description": text} if text else {}


def _tool_kinds() -> dict[str, str]:
    """Return every kind that can run here or by a plugin, and what it does."""
    installed = dict.fromkeys(kind_names(), "a plugin's tool")
    plugins = {name: f"needs a plugin for {what}" for name, what in PLUGIN_KINDS.items()}
    return plugins | installed | {name: kind.summary for name, kind in builtin_kinds().items()}


def _one_of(values: dict[str, str], *, more: bool = False) -> Schema:
    """Return the values that an editor offers; `more`: other texts are accepted too."""
    listed: Schema = {"enum": list(values), "markdownEnumDescriptions": list(values.values())}
    return {"anyOf": [listed, {"type": "string"}]} if more else listed


def _labelled() -> Schema:
    return {
        "description": "A task under its label.",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "propertyNames": {"not": {"enum": sorted(SUGAR)}},
        "additionalProperties": _ref("labelled_task"),
    }


def _sugar(word: str, rules: Rules) -> Schema:
    body = rules[word][0][2]
    inner = {word: {**_ref(body), **_described(word, word)}}
    schema = {"type": "object", "properties": inner, "required": [word], "additionalProperties": False}
    return {"title": word, **schema}


def _item(name: str, rules: Rules) -> str:
    """The rule of a list's items: what the repetition between the brackets repeats."""
    repeated = next(symbols[1] for symbols in rules[name] if len(symbols) == 3)
    return rules[repeated][0][0]


def _alternatives(choices: list[list[str]], rules: Rules, literals: dict[str, str]) -> Schema:
    words = [literals[symbol] for (symbol,) in choices if symbol in literals]
    others = [_symbol(symbol, rules) for (symbol,) in choices if symbol not in literals]
    if words:
        others.insert(0, {"enum": words})
    return others[0] if len(others) == 1 else {"anyOf": others}


def _symbol(symbol: str, rules: Rules) -> Schema:
    return _ref(symbol) if symbol in rules else dict(_TERMINALS[symbol])


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _kind_condition(kind: ToolKind) -> Schema:
    """If a task is of this kind, its inputs and settings are these."""
    declared = {item.name: _input(item) for item in kind.inputs}
    if kind.takes_auth:
        declared["auth"] = dict(_AUTH)
    settings = {
        item.name: {"description": item.doc, "anyOf": [{"type": list(item.types)}, _TEMPLATE]} for item in kind.settings
    }
    known = declared | {f"spec.{name}": schema for name, schema in settings.items()}
    others = {name: known[meant] for name, meant in kind.spellings.items() if meant in known}
    then: Schema = {"properties": declared | others}
    if settings:
        then["properties"]["spec"] = {"properties": settings}
    required = [item.name for item in kind.inputs if item.required]
    if required:
        then["allOf"] = [_is_given(name, kind) for name in required]
    return {"if": {"properties": {"kind": {"const": kind.name}}, "required": ["kind"]}, "then": then}


def _is_given(name: str, kind: ToolKind) -> Schema:
    """The input has one of its names; under `spec` it is misplaced, and read all the same."""
    names = [name, *(other for other, meant in kind.spellings.items() if meant == name)]
    in_spec = {"required": ["spec"], "properties": {"spec": {"required": [name]}}}
    return {"anyOf": [*({"required": [one]} for one in names), in_spec]}


def _input(item: Input) -> Schema:
    typed: Schema = {"enum": list(item.choices)} if item.choices else {"type": list(item.types)}
    schema: Schema = {"description": item.doc, "anyOf": [typed, _TEMPLATE]}
    if item.choices and not any(choice.islower() for choice in item.choices):  # any case is accepted, one is offered
        schema["anyOf"].append({"type": "string", "pattern": f"^({'|'.join(map(str.lower, item.choices))})$"})
    if item.default is not None:
        schema["default"] = item.default
    return schema
