"""Every set of keys out of {0, 1, 2, 3, NULL, NaN, -0.0} against every container of up to two of these values."""

from __future__ import annotations

import pytest

from tests.pruning.plain_pruning import ALL_KNOWN, NOTHING_KNOWN, PARTLY_KNOWN
from tests.pruning.soundness import EVERY_CONTENT, EVERY_KEY_SET, check_every_small_set


def test_all_small_sets_are_generated():
    assert (128, 36) == (len(EVERY_KEY_SET), len(EVERY_CONTENT))


@pytest.mark.parametrize(
    ("knowledge", "skipped"),
    [
        pytest.param(ALL_KNOWN, 1197, id="all-known"),
        pytest.param(PARTLY_KNOWN["low"], 641, id="low-unknown"),
        pytest.param(PARTLY_KNOWN["high"], 713, id="high-unknown"),
        # Failure catalogue 68: a missing null count is not 0.
        pytest.param(PARTLY_KNOWN["nulls"], 667, id="null-count-unknown"),
        pytest.param(PARTLY_KNOWN["rows"], 949, id="row-count-unknown"),
        # Failure catalogue 61, 64: bounds do not cover NaN.
        pytest.param(PARTLY_KNOWN["nans"], 793, id="nan-unknown"),
        pytest.param(NOTHING_KNOWN, 36, id="nothing-known"),
    ],
)
def test_small_sets_skip_all_that_statistics_allow(knowledge, skipped):
    assert (skipped, 128 * 36) == check_every_small_set(knowledge)
