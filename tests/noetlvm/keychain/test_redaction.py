"""No secret gets past the redactor in a form that is known, and what is no secret stays as it is."""

from __future__ import annotations

import base64
import html
import json
import string
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal
from unicodedata import normalize
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from noetlvm.data.references import Reference, ReferringList, ReferringMap
from noetlvm.keychain.redaction import MASK, PAIRED, Redactor
from tests.canary import find_canaries

SECRET = 'hunter2/Kö+"9\\q~Zx7\n!wV4'


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS: dict[str, Callable[[str], str]] = {
    "raw": lambda s: s,
    "reversed": lambda s: s[::-1],
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 after one byte": lambda s: base64.b64encode(b"u" + s.encode()).decode(),
    "base64 within": lambda s: base64.b64encode(b"user:" + s.encode() + b"@host").decode(),
    "base64 for URLs": lambda s: base64.urlsafe_b64encode(b"xx" + s.encode()).decode().rstrip("="),
    "base64 in lines": lambda s: base64.encodebytes(b"-" * 50 + s.encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
    "hex pairs": lambda s: s.encode().hex(":"),
    "url": lambda s: quote(s, safe=""),
    "url path": lambda s: quote(s),
    "url form": lambda s: quote_plus(s),
    "url, every byte": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "json": lambda s: json.dumps(s),
    "json as it is": lambda s: json.dumps(s, ensure_ascii=False),
    "json in json": lambda s: json.dumps(json.dumps({"token": s})),
    "spaced": lambda s: " ".join(s),
    "html": lambda s: html.escape(s),
    "python bytes": lambda s: repr(s.encode()),
    "python ascii": lambda s: ascii(s),
    "base64 twice": lambda s: in_base64(in_base64(f"user:{s}")),
    "base64 twice, within": lambda s: in_base64(f"Basic {in_base64(f'me:{s}')}."),
    "base64 in a URL": lambda s: quote(in_base64(f"u:{s}"), safe=""),
    "url in base64": lambda s: in_base64(f"https://x/?t={quote(s, safe='')}&a=1"),
    "url twice": lambda s: quote(quote(s, safe=""), safe=""),
    "json in base64": lambda s: in_base64(json.dumps({"token": s})),
    "hex in base64": lambda s: in_base64(f"0x{s.encode().hex()}"),
    "HEX in base64": lambda s: in_base64(s.encode().hex().upper()),
    "base64 in hex": lambda s: in_base64(f"me:{s}").encode().hex(),
    "reversed in base64": lambda s: in_base64(f"/{s[::-1]}"),
    "base64 reversed": lambda s: in_base64(f"a{s}")[::-1],
}
FORMS |= {
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32 lower": lambda text: base64.b32encode(text.encode()).decode().lower().rstrip("="),
    "base32 shifted": lambda text: base64.b32encode(f"abc{text}xy".encode()).decode(),
    "base32hex": lambda text: base64.b32hexencode(text.encode()).decode(),
    "utf-16 little": lambda text: text.encode("utf-16-le").decode("latin-1"),
    "utf-16 big": lambda text: text.encode("utf-16-be").decode("latin-1"),
    "utf-16 base64": lambda text: base64.b64encode(text.encode("utf-16")).decode(),
    "utf-16 hex": lambda text: text.encode("utf-16-be").hex(),
    "utf-16 in the other order": lambda text: text.encode("utf-16-be").decode("utf-16-le"),
    "escape sequences of bytes": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "bytes in C": lambda text: ", ".join(f"0x{byte:02X}" for byte in text.encode()),
    "escape sequences of characters": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "character references": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "hexadecimal character references": lambda text: "".join(f"&#x{ord(one):X};" for one in text),
    "html in ASCII": lambda text: html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
}
NAMED_FORMS = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_bytes_that_are_read_as_latin_1_are_masked(encoding: str) -> None:
    secret = "пароль-🔑🗝🔐-éü"
    shown = Redactor([secret]).redact(f"<{secret.encode(encoding).decode('latin-1')}>")
    assert MASK in shown
    assert len(shown) < 10  # what is left are control characters at its ends


LETTERS = string.ascii_letters + string.digits
TOKENS = st.text(LETTERS, min_size=16, max_size=48)
ANY_SECRETS = st.text(st.characters(codec="utf-8"), min_size=4, max_size=40)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def seen(value: Any) -> bytes:
    """A value's texts, one after another, as a reader could put them together."""
    if isinstance(value, dict):
        return b"".join(seen(item) for item in (*value.values(), *value))
    if isinstance(value, list | tuple):
        return b"".join(seen(item) for item in value)
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@NAMED_FORMS
def test_every_form_is_masked_wherever_it_stands(form: Callable[[str], str]) -> None:
    redact = Redactor([SECRET]).redact
    text = form(SECRET)
    for value in (text, f"before {text} after", text.encode(), {"a": [1, {"b": text}]}, {text: 1}, [text, text]):
        shown = redact(value)
        assert MASK.encode() in seen(shown)
        assert find_canaries(seen(shown), SECRET) == []


@NAMED_FORMS
@given(secret=TOKENS)
@settings(max_examples=40, deadline=None)
def test_every_form_of_any_token_is_masked(form: Callable[[str], str], secret: str) -> None:
    shown = Redactor([secret]).redact({"log": [f"<{form(secret)}>"]})
    assert find_canaries(seen(shown), secret) == []


@settings(deadline=None)
@given(ANY_SECRETS, st.text(), st.text())
@example("....", "", "")
@example("a-b-", "", "")
@example("\x00\x00\x00\x00", "", "")
def test_any_text_of_four_characters_is_masked(secret: str, before: str, after: str) -> None:
    # A secret of asterisks may be put together again from the mask and what stands beside it.
    assume("*" not in secret and secret not in before + after)
    assert secret not in Redactor([secret]).redact(before + secret + after)


@settings(deadline=None)
@given(TOKENS, st.lists(st.integers(0, 48), max_size=6))
def test_pieces_in_neighbouring_values_are_masked(secret: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(secret)) for cut in cuts), len(secret)]
    pieces = [secret[start:end] for start, end in pairwise(edges)]
    redact = Redactor([secret]).redact
    for value in (pieces, {f"part {index}": piece for index, piece in enumerate(pieces)}, [[p] for p in pieces]):
        assert set(seen(redact(value)).decode()) <= set("*part 0123456789")
        assert redact(value) == _with_pieces_masked(value)


def _with_pieces_masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_pieces_masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_pieces_masked(item) for item in value]
    return MASK if value else ""


@pytest.mark.parametrize("secret", ["hunter2Kq9", "Tr0ub4dor&3", "pa55-w0rd.Xy"])
def test_both_halves_of_a_shorter_secret_are_masked_wherever_they_stand_in_one_value(secret: str) -> None:
    redact = Redactor([secret]).redact
    half = len(secret) // 2
    first, second = secret[:half], secret[half:]
    for value in (
        {"a": f"it begins with {first}", "between": "something else", "b": f"and ends with {second}"},
        {"b": second, "between": "something else", "a": first},
        f"{second}, after which comes {first}",
        {"a": first[::-1], "between": 7, "b": second[::-1]},
    ):
        shown = seen(redact(value)).decode()
        assert not any(piece in shown for piece in (first, second, first[::-1], second[::-1]))


def test_halves_of_a_secret_below_the_limit_are_words_like_any_others() -> None:
    secret = "abcdefghijklmno"
    for length, is_masked in ((PAIRED, True), (PAIRED - 1, False)):
        known, half = secret[:length], length // 2
        shown = Redactor([known]).redact([known[:half], "between", known[half:]])
        assert (shown == [MASK, "between", MASK]) is is_masked


def test_half_of_a_shorter_secret_alone_is_a_word_like_any_other() -> None:
    redact = Redactor(["hunter2Kq9"]).redact
    assert redact({"animal": "hunter"}) == {"animal": "hunter"}


def test_half_of_a_secret_that_is_long_by_its_punctuation_is_masked_alone_as_it_stands() -> None:
    secret = "cA!n#a%r&y*(7)-_=+[]{}"
    redactor = Redactor([secret])
    first, second = secret[:11], secret[11:]
    assert redactor.redact([first, second]) == ["***", "***"]
    assert redactor.redact({"log": f"<{second}>"}) == {"log": "<***>"}
    assert redactor.redact(second[::-1]) == "***"
    assert redactor.redact(["cAnary", first.lower(), first[:-1]]) == ["cAnary", first.lower(), first[:-1]]


def test_half_of_a_secret_that_is_a_row_of_dashes_is_no_secret() -> None:
    assert Redactor(["a1b2c3" + "-" * 20]).redact(["-" * 40, "| --- | --- |"]) == ["-" * 40, "| --- | --- |"]


def test_half_of_a_long_secret_is_masked_alone() -> None:
    secret = "Zx7wV4Kq9mB2nL5pRt8sYd3f"
    redact = Redactor([secret]).redact
    assert redact({"first": secret[:12]}) == {"first": MASK}
    assert redact({"last": secret[12:]}) == {"last": MASK}
    assert redact(f"{secret[:20]}!") == f"{MASK}!"


@settings(deadline=None)
@given(DATA)
def test_what_holds_no_secret_is_returned_itself(value: Any) -> None:
    secret = "Zx7wV4Kq9mB2nL5pRt8sYd3f"
    assert Redactor([secret]).redact(value) is value
    assert Redactor([]).redact(value) is value


@settings(deadline=None)
@given(DATA, TOKENS)
def test_only_the_secret_goes(value: Any, secret: str) -> None:
    marked = {"kept": value, "left": f"a {secret} b", "right": 7}
    assume(Redactor([secret]).redact(value) is value)
    assert Redactor([secret]).redact(marked) == {"kept": value, "left": f"a {MASK} b", "right": 7}


def test_a_short_secret_is_masked_only_where_it_is_a_whole_value() -> None:
    redact = Redactor(["ab"]).redact
    assert redact(["ab", "cab", {"x": "ab"}]) == [MASK, "cab", {"x": MASK}]


def test_a_number_that_is_a_secret_is_masked() -> None:
    assert Redactor(["48151623"]).redact({"pin": 48151623, "n": 4815}) == {"pin": MASK, "n": 4815}


def test_a_short_form_is_not_put_together_from_neighbours() -> None:
    assert Redactor(["1000"]).redact([10, 0, 0]) == [10, 0, 0]


def test_each_line_of_a_private_key_is_a_secret() -> None:
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB", "-----END KEY-----"]
    redact = Redactor(["\n".join(lines)]).redact
    assert redact([lines[1]]) == [MASK]
    assert redact(lines[0]) == lines[0]


def test_what_is_learnt_later_is_masked_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.redact("a-late-secret") == "a-late-secret"
    redactor.learn(["a-late-secret"])
    assert redactor.redact("a-late-secret") == MASK


def test_looking_does_not_load_stored_results() -> None:
    def load(reference: Reference) -> Any:
        raise AssertionError(f"{reference} was loaded")

    reference = Reference("files", "0" * 64, 10, "text")
    mapped = Redactor(["a-secret-text"]).redact(ReferringMap({"a": reference, "b": "a-secret-text"}, load))
    assert type(mapped) is ReferringMap
    assert mapped.raw() == {"a": reference, "b": MASK}
    listed = Redactor(["a-secret-text"]).redact(ReferringList([reference, "a-secret-text"], load))
    assert type(listed) is ReferringList
    assert listed.raw() == [reference, MASK]


def test_a_value_too_deep_to_look_through_is_masked_as_a_whole() -> None:
    deep: Any = "a-secret-text"
    for _ in range(100_000):
        deep = [deep]
    assert Redactor(["a-secret-text"]).redact(deep) == MASK


def test_tuples_and_lone_surrogates_survive() -> None:
    assert Redactor(["a-secret-text"]).redact(("\ud800", "a-secret-text")) == ("\ud800", MASK)


@pytest.mark.parametrize("change", [str.upper, str.lower, str.title, str.swapcase])
def test_letters_that_are_not_ascii_are_masked_in_another_case_too(change: Callable[[str], str]) -> None:
    secret = "Пароль-Құпия-Straße"
    for value in (change(secret), {"a": json.dumps(change(secret))}, [f"x {change(secret)} y"]):
        assert not find_canaries(seen(Redactor([secret]).redact(value)), change(secret))


@pytest.mark.parametrize("secret", ["!@#$%^&*()_+{}|:<>?~", "@#$%^&*!", "{[(<1>)]}"])
@pytest.mark.parametrize("between", [" ", "-", ", ", ".", "\n"])
def test_a_secret_of_punctuation_is_masked_with_its_characters_apart(secret: str, between: str) -> None:
    redact = Redactor([secret]).redact
    assert redact(f"<{between.join(secret)}>") == f"<{MASK}>"
    assert redact(["a", *secret]) == ["a", *[MASK] * len(secret)]


@pytest.mark.parametrize("change", [str.upper, str.lower, str.swapcase])
def test_a_secret_of_few_letters_is_masked_in_another_case_too(change: Callable[[str], str]) -> None:
    assert Redactor(["Qx7$p"]).redact(f"<{change('Qx7$p')}>") == f"<{MASK}>"


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_composed_and_decomposed_letters_are_masked(form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> None:
    for secret in (normalize("NFC", "Ωμέγα-Σίσυφος-йё"), normalize("NFD", "Ωμέγα-Σίσυφος-йё")):
        assert Redactor([secret]).redact(f"<{normalize(form, secret)}>") == f"<{MASK}>"


def test_utf_8_that_is_read_as_windows_1252_is_masked() -> None:
    secret = "naïve-Schlüssel-Straße"
    assert Redactor([secret]).redact(f"<{secret.encode().decode('cp1252')}>") == f"<{MASK}>"


def test_a_text_that_has_bytes_of_a_secret_is_cut_between_characters() -> None:
    """Letters in another case have their first byte in common, and a part is extended as far as it agrees."""
    secret = "Ωμέγα-Σίσυφος-ς"
    assert MASK in Redactor([secret]).redact(secret.casefold())


@settings(deadline=None)
@given(st.text("еёжзийЕЁЖЗИЙ", min_size=6, max_size=20), st.text("еёжзийЕЁЖЗИЙ", min_size=6, max_size=20))
def test_any_text_stays_one(secret: str, text: str) -> None:
    Redactor([secret]).redact([secret[:-1] + text, text + secret[1:], secret.casefold()])
