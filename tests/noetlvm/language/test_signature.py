"""A call that does not fit is explained in a sentence."""

import pytest

from noetlvm.language.methods import Signature, signature

REPLACE = signature("replace", "old new count?", "")
ROUND = signature("round", "precision? method?", "")
STRIP = signature("strip", "chars? /", "")
UPPER = signature("upper", "", "")
FORMAT = signature("format", "* **", "")
SELECTATTR = signature("selectattr", "attribute / * **", "")


@pytest.mark.parametrize(
    ("row", "positional", "keywords"),
    [
        (REPLACE, 2, ()),
        (REPLACE, 3, ()),
        (REPLACE, 1, ("new",)),
        (REPLACE, 0, ("new", "old")),
        (ROUND, 0, ("method",)),
        (UPPER, 0, ()),
        (FORMAT, 9, ("anything",)),
        (SELECTATTR, 1, ("attribute",)),
    ],
)
def test_a_call_that_fits_has_no_problem(row: Signature, positional: int, keywords: tuple[str, ...]) -> None:
    assert row.problem(positional, keywords) is None


@pytest.mark.parametrize(
    ("row", "positional", "keywords", "problem"),
    [
        (REPLACE, 1, (), "`replace` lacks `new`: it takes 2 to 3 arguments"),
        (REPLACE, 0, (), "`replace` lacks `old` and `new`: it takes 2 to 3 arguments"),
        (REPLACE, 4, (), "`replace` takes 2 to 3 arguments, not 4"),
        (REPLACE, 2, ("old",), "`replace` gets `old` twice"),
        (REPLACE, 2, ("count", "count"), "`replace` gets `count` twice"),
        (ROUND, 3, (), "`round` takes at most 2 arguments, not 3"),
        (ROUND, 0, ("digits",), "`round` has no argument named `digits` (it has `precision`, `method`)"),
        (STRIP, 2, (), "`strip` takes at most 1 argument, not 2"),
        (STRIP, 0, ("chars",), "`strip` has no argument named `chars`"),
        (UPPER, 1, (), "`upper` takes no arguments, not 1"),
        (SELECTATTR, 0, (), "`selectattr` lacks `attribute`: it takes at least 1 argument"),
    ],
)
def test_a_call_that_does_not_fit_says_why(
    row: Signature, positional: int, keywords: tuple[str, ...], problem: str
) -> None:
    assert row.problem(positional, keywords) == problem
