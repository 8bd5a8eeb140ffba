"""Shares of the runs that try to leave a secret behind; `make audit` makes all of them."""

from __future__ import annotations

import pytest

from tests.whole.audit.secrets import report

SHARE = 48
PARTS = 6


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
def test_no_run_leaves_a_secret_behind(part: int) -> None:
    found = report(SHARE, offset=part * SHARE // PARTS)
    assert found["wrong"] == {}
    assert found["all"] >= 549
    assert found["runs"] >= found["all"] // SHARE
