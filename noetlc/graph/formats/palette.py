"""The light and dark colours of pictures, and style sheets made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_COLOURS = {
    "ground": ("#ffffff", "#12161c"),
    "ink": ("#1c2128", "#e6eaf0"),
    "soft": ("#55606c", "#a3afbc"),
    "line": ("#68737f", "#8c99a8"),
    "card": ("#f3f6fa", "#1e252e"),
    "edge": ("#8b97a4", "#5d6b7b"),
    "inner": ("#ffffff", "#171c23"),
    "accent": ("#0b62c4", "#6cb2ff"),
    "bad": ("#b3261e", "#ff8a80"),
    "warn": ("#9a5b00", "#f0b35a"),
    "dead": ("#8a949f", "#6d7985"),
    "panel": ("#f7f8fa", "#171c23"),
    "rule": ("#d5dbe2", "#303a45"),
    "hit": ("#fff1b8", "#4a3d12"),
}
LIGHT, DARK = ({name: both[side] for name, both in _COLOURS.items()} for side in (0, 1))
_NAME = re.compile(r"var\(--([a-z]+)\)")


@cache
def asset(name: str) -> str:
    return files("noetlc.graph").joinpath("page", name).read_text(encoding="utf-8")


@cache
def standalone_style() -> str:
    """Return the picture's style in the colours that the viewer prefers."""
    return f"{style_in(LIGHT)}@media (prefers-color-scheme: dark) {{\n{style_in(DARK)}}}\n"


def style_in(colours: Mapping[str, str]) -> str:
    """Return the picture's style with colours written out: many a viewer of SVG files does not support variables."""
    return _NAME.sub(lambda name: colours[name[1]], asset("picture.css"))


def variables() -> str:
    """Return the colours as variables: those that the viewer prefers, unless the page specifies otherwise."""
    light, dark = ("; ".join(f"--{name}: {value}" for name, value in one.items()) for one in (LIGHT, DARK))
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=light] {{ color-scheme: light; {light} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n"
    )
