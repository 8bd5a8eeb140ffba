"""Did you mean: the known name nearest to an unknown one. One measure for both programs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

COMPARISONS_MAX = 50_000
"""Names of ten letters that may be compared for the suggestions of one file: with thousands of unknown names, few are
misspelt. Longer names count more, because a comparison takes the square of their length."""
WORD_CHARS_MAX = 200
"""Longer words get no suggestion."""


def nearest(word: str, known: Iterable[str], *, slips: int | None = None) -> str:
    """Return the known name within `slips` typing slips of `word` (default: one in three letters), or nothing."""
    if len(word) > WORD_CHARS_MAX:
        return ""
    limit = min(max(1, len(word) // 3), len(word) - 1) if slips is None else slips
    best, best_distance = "", limit + 1
    lowered = word.lower()
    letters = set(lowered)
    for candidate in known:
        # Each slip changes one letter, so a candidate that lacks more letters than that is too far.
        if abs(len(candidate) - len(word)) > limit or len(letters.difference(candidate.lower())) > limit:
            continue
        distance = _distance(lowered, candidate.lower(), min(limit, best_distance))
        if distance < best_distance or (distance == best_distance <= limit and candidate < best):
            best, best_distance = candidate, distance
    return best


class Suggestions:
    """Suggestions for the unknown names of one file: exact ones, and none once they have cost as much as they may."""

    def __init__(self) -> None:
        self._left = COMPARISONS_MAX

    def nearest(self, word: str, known: Iterable[str]) -> str:
        """Return the known name nearest to `word`, or nothing."""
        cost = max(1, len(word) ** 2 // 100)
        compared = list(islice(known, self._left // cost))
        self._left -= len(compared) * cost
        return nearest(word, compared) if self._left >= cost else ""

    def did_you_mean(self, word: str, known: Iterable[str]) -> str:
        """Return `did you mean …?` for a help text, or an empty string."""
        return _question(self.nearest(word, known))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean …?` for a help text, or an empty string."""
    return _question(nearest(word, known))


def _question(found: str) -> str:
    return f"did you mean `{found}`?" if found else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean …?`, ready to append to a sentence, or an empty string."""
    found = nearest(word, known)
    return f" Did you mean `{found}`?" if found else ""


def _distance(left: str, right: str, limit: int) -> int:
    """Return the Damerau-Levenshtein distance (a swap of neighbours is one slip); above `limit` any larger number."""
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        current = [i]
        for j, b in enumerate(right, 1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, previous = previous, current
    return previous[-1]
