"""How text is collected in a translated function: known pieces are joined at once, others go through a list."""

from __future__ import annotations

from noetlvm.expr.translate_entries import SHORT, StackEntry, StatementNeededError, Text, call_text
from noetlvm.expr.translate_writer import Writer

SHORT_TEXT = 4_096
"""Characters up to which a text may be made before it is paid for."""


def begin(w: Writer, _at: int) -> None:
    """Begin to collect a text."""
    collect(w)
    w.settle()
    if w.pure:
        raise StatementNeededError
    w.texts.append(Text(w.variable()))


def emit(w: Writer, at: int) -> None:
    """Add a value to the text."""
    value = w.pop()
    w.settle()
    held, first = w.assigned(value)
    piece = w.variable()
    converted = call_text(at, "text", "fuel", held)
    w.line(f"{piece} = {held} if type({first}) is str else {converted}")
    _add(w, piece, f"len({piece})")


def emit_constant(w: Writer, _at: int, text: str) -> None:
    """Add a constant to the text."""
    w.settle()
    if w.pure:
        raise StatementNeededError
    _add(w, w.constant(text), str(len(text)))


def _add(w: Writer, piece: str, length: str) -> None:
    text = w.texts[-1]
    if text.is_list:
        w.line(f"{text.name}.append({piece})")
    else:
        text.pieces.append((piece, length))


def collect(w: Writer) -> None:
    """From here on, add the pieces of the open text to a list: a block may add any number of them."""
    if w.texts and not w.texts[-1].is_list:
        text = w.texts[-1]
        w.line(f"{text.name} = [{', '.join(piece for piece, _ in text.pieces)}]")
        text.is_list = True


def end(w: Writer, at: int) -> None:
    """Push the text."""
    w.settle()
    if w.pure:
        raise StatementNeededError
    text = w.texts.pop()
    name = w.variable()
    if text.is_list or not 0 < len(text.pieces) <= SHORT:
        pieces = text.name if text.is_list else f"[{', '.join(piece for piece, _ in text.pieces)}]"
        w.line(f"{name} = {call_text(at, 'joined', 'fuel', pieces)}")
    else:
        _short_text(w, at, name, text.pieces)
    w.stack.append(StackEntry(name))


def _short_text(w: Writer, at: int, name: str, pieces: list[tuple[str, str]]) -> None:
    """Join pieces whose number is known: a short text at once, a long one by the operation."""
    length = w.variable()
    w.line(f"{length} = {' + '.join(size for _, size in pieces)}")
    listed = f"[{', '.join(piece for piece, _ in pieces)}]"
    w.line(f"if {length} > {SHORT_TEXT}: {name} = {call_text(at, 'joined', 'fuel', listed)}")
    w.line("else:")
    margin = " "
    w.line(f"{margin}{name} = f'{''.join(f'{{{piece}}}' for piece, _ in pieces)}'")
    w.line(f"{margin}fuel.bytes -= {length} if {name}.isascii() else 4 * {length}")
    w.line(f"{margin}if fuel.bytes < 0: fuel.run_out()  #{at}")
