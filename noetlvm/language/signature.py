"""How a filter, test, function or method may be called, and what is wrong with a call that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Signature(Record):
    """Name, parameters and meaning. The piped, tested or receiving value is not a parameter."""

    name: str
    parameters: tuple[str, ...]
    required: int
    """How many parameters, counted from the first, have no default."""
    positional_only: int
    """How many parameters, counted from the first, cannot be given by name."""
    variadic: bool
    """Takes any number of further positional arguments."""
    any_keyword: bool
    """Takes any further named arguments."""
    doc: str

    @property
    def most(self) -> int | None:
        """The greatest number of positional arguments, or None if there is no limit."""
        return None if self.variadic else len(self.parameters)

    @property
    def keywords(self) -> tuple[str, ...]:
        """The parameters that can be given by name."""
        return self.parameters[self.positional_only :]

    def problem(self, positional: int, keywords: Sequence[str] = ()) -> str | None:
        """Say in a sentence why a call with these arguments fails, or return None if it fits."""
        return next(self._problems(positional, keywords), None)

    def _problems(self, positional: int, keywords: Sequence[str]) -> Iterator[str]:
        if self.most is not None and positional > self.most:
            yield f"`{self.name}` takes {self._expected()}, not {positional}"
        given = set(self.parameters[:positional])
        for keyword in keywords:
            if keyword in self.keywords:
                if keyword in given:
                    yield f"`{self.name}` gets `{keyword}` twice"
                given.add(keyword)
            elif not self.any_keyword:
                yield f"`{self.name}` has no argument named `{keyword}`{self._offer()}"
        missing = [name for name in self.parameters[: self.required] if name not in given]
        if missing:
            yield f"`{self.name}` lacks {' and '.join(f'`{name}`' for name in missing)}: it takes {self._expected()}"

    def _expected(self) -> str:
        most = len(self.parameters)
        if self.variadic:
            return f"at least {_arguments(self.required)}"
        if most == 0:
            return "no arguments"
        if self.required == most:
            return _arguments(most)
        return f"{self.required} to {_arguments(most)}" if self.required else f"at most {_arguments(most)}"

    def _offer(self) -> str:
        return f" (it has {', '.join(f'`{name}`' for name in self.keywords)})" if self.keywords else ""


def _arguments(count: int) -> str:
    return f"{count} argument" if count == 1 else f"{count} arguments"


def signature(name: str, parameters: str, doc: str) -> Signature:
    """Make a signature from Python's own notation, by spaces: `old new count?`, `chars? /`, `* **`.

    A question mark ends an optional parameter, those before `/` cannot be named, `*` and `**` take whatever comes.
    """
    words = parameters.split()
    names = [word for word in words if word not in ("/", "*", "**")]
    return Signature(
        name,
        tuple(word.rstrip("?") for word in names),
        required=sum(not word.endswith("?") for word in names),
        positional_only=words.index("/") if "/" in words else 0,
        variadic="*" in words,
        any_keyword="**" in words,
        doc=doc,
    )


def table(*rows: tuple[str, str, str]) -> dict[str, Signature]:
    """Make a table by name from rows of name, parameters and meaning."""
    return {name: signature(name, parameters, doc) for name, parameters, doc in rows}
