"""A small token game by the rules of the language, to replay witnesses in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.noetlc.graph.brute_force import BruteForce, Fire, Marking

if TYPE_CHECKING:
    from noetlc.graph.report import Firing, Witness


class CannotFire(Exception):  # noqa: N818 - it reads as what it says
    """The witness does what no run can do."""


def replay(game: BruteForce, witness: Witness) -> list[Marking]:
    """Return the marking before the first firing and after each."""
    markings = [game.start]
    for firing in witness:
        markings.append(_after(game, markings[-1], firing))
    return markings


def _after(game: BruteForce, marking: Marking, firing: Firing) -> Marking:
    number = game.names.index(firing.step)
    if not marking[number]:
        raise CannotFire(f"no token at {firing.step}")
    if [game.names[game.targets[number][arc - 1]] for arc in firing.arcs] != list(firing.targets):
        raise CannotFire(f"the arcs of {firing.step} lead elsewhere")
    if firing.event == "token.rejected":
        if firing.arcs or not game.denies[number]:
            raise CannotFire(f"{firing.step} holds no token")
        return marking
    arcs = None if firing.event == "token.dropped" else frozenset(arc - 1 for arc in firing.arcs)
    fire = Fire(number, firing.event, arcs)
    if fire not in game.fires[number]:
        raise CannotFire(f"{firing.step} never fires {firing.arcs} after {firing.event}")
    return game.after(marking, fire)
