"""`option_confs`: the confs of a session with a given prefix, for values of any text."""

from __future__ import annotations

import pytest

from connectors.spark.session import option_confs
from pruning import prune
from pruning.errors import InvalidOptionError

pytestmark = pytest.mark.spark


def test_conf_values_of_any_text(spark, conf):
    assert {} == option_confs(spark, "spark.mine.")
    values = {"a": "", "b c": "x y\nz ", "d": "\U0001f600=%20+", "e": "plain"}
    for name, text in values.items():
        conf(f"spark.mine.{name}", text)
    assert {f"spark.mine.{name}": text for name, text in values.items()} == option_confs(spark, "spark.mine.")
    every = {name: text for name, text in spark.conf.getAll.items() if name.startswith("spark.sql.")}
    assert every == option_confs(spark, "spark.sql.")


def test_new_session_has_its_own_confs(spark, conf):
    conf("spark.mine.a", "1")
    other = spark.newSession()
    other.conf.set("spark.mine.a", "2")
    assert [{"spark.mine.a": "1"}, {"spark.mine.a": "2"}] == [
        option_confs(each, "spark.mine.") for each in (spark, other)
    ]


def test_error_names_an_empty_option(spark, conf):
    conf("spark.pruning.limits.max_ranges", "")
    with pytest.raises(InvalidOptionError, match=r"spark\.pruning\.limits\.max_ranges"):
        prune(spark.range(3))


def test_confs_take_few_py4j_calls(spark, bridge_calls):
    option_confs(spark, "spark.pruning.")
    assert 1 == bridge_calls(lambda: option_confs(spark, "spark.pruning."))
