"""Tests that the demo refuses an impossible scale before it makes anything."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.demo.run import check
from pruning.errors import EnvironmentProblem


@pytest.mark.parametrize("scale", [0.0, 0.009, -1.0, 1001.0, float("nan"), float("inf")])
def test_impossible_scale_is_refused_before_anything_is_made(tmp_path, scale):
    with pytest.raises(ValueError, match=r"it must be a number from 0.01 to 1000"):
        check(tmp_path / "tables", scale)
    assert [] == list(tmp_path.iterdir())


def test_scale_that_the_disk_cannot_hold_is_refused(tmp_path):
    if shutil.disk_usage(tmp_path).free > 1_200_000_000_000:
        pytest.skip("the disk holds the largest scale")
    with pytest.raises(EnvironmentProblem, match=r"at scale 1000 needs about [\d,]+ MiB; .* a smaller --scale"):
        check(tmp_path, 1000)
    assert [] == list(tmp_path.iterdir())
