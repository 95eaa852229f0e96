"""Confs of a session, read together."""

from __future__ import annotations

import pytest

from connectors.spark.confs import Confs, confs_beginning_with

pytestmark = pytest.mark.spark

NAMES = ("spark.scanprune.one", "spark.scanprune.two", "spark.scanprune.three", "spark.scanprune.none")
TEXTS = ("", "a b=c+d%20 \n é", "FALSE")


@pytest.fixture
def confs(conf) -> dict[str, str]:
    found = dict(zip(NAMES, TEXTS, strict=False))
    for name, text in found.items():
        conf(name, text)
    return found


def test_confs_are_read_by_one_call(spark, confs, bridge_calls):
    Confs.of(spark, NAMES)
    found = []
    assert 1 == bridge_calls(lambda: found.append(Confs.of(spark, NAMES)))
    assert confs == found[0].values
    assert [True, True, False, True] == [found[0].is_on(name) for name in NAMES]


def test_confs_of_a_prefix(spark, confs):
    assert confs == confs_beginning_with(spark, "spark.scanprune.")
    assert {} == confs_beginning_with(spark, "spark.scanprune.none")
