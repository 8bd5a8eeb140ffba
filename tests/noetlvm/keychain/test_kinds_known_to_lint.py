"""The names that the linter knows are those that the keychain has."""

from __future__ import annotations

from noetlvm.keychain.resolve import BUILTIN
from noetlvm.keychain.shapes import SHAPES
from noetlvm.language.keychain import FORMS, PLUGIN_KINDS, PROVIDERS


def test_lint_knows_every_form_and_every_provider() -> None:
    assert FORMS.keys() == SHAPES.keys()
    assert PROVIDERS.keys() == BUILTIN.keys()
    assert not PLUGIN_KINDS.keys() & (FORMS.keys() | PROVIDERS.keys())
