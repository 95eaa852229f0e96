from __future__ import annotations

import random

import numpy as np
import pytest

from connectors.spark.transfer import JvmList, long_text

pytestmark = pytest.mark.spark


def words(spark, *items: str) -> JvmList:
    return JvmList(spark, spark._jvm.java.util.ArrayList(list(items)))


def test_methods_are_called_on_every_element(spark):
    found = words(spark, " a ", "bcd", "")
    assert ["a", "bcd", ""] == found.texts("java.lang.String.trim")
    assert [3, 3, 0] == found.numbers("java.lang.String.length").tolist()
    assert [1, 3, 0] == found.map("java.lang.String.trim").numbers("java.lang.String.length").tolist()


def test_empty_list_has_no_text(spark):
    assert ([], 0) == (words(spark).texts("java.lang.String.trim"), len(words(spark)))
    assert [""] == words(spark, "").texts()


def test_long_text_comes_in_one_call_for_each_piece(spark, bridge_calls):
    draw = random.Random(7)  # noqa: S311 - text that no packing makes short
    for size, calls in ((0, 2), (100, 2), (7_000, 2), (30_000, 4)):
        text = "".join(draw.choices("0123456789abcdef", k=size))
        lines = words(spark, text).items
        assert calls == bridge_calls(lambda lines=lines: long_text(spark, lines))
        assert text == long_text(spark, lines)


@pytest.mark.parametrize("count", [0, 1, 8, 9, 1000])
def test_mask_selects_elements(spark, count):
    items = [str(index) for index in range(count)]
    found = words(spark, *items)
    for mask in (np.arange(count) % 3 == 0, np.zeros(count, bool), np.ones(count, bool)):
        assert [item for item, is_kept in zip(items, mask, strict=True) if is_kept] == found.where(mask).texts()


def test_scala_sequences_are_flattened_in_order(spark):
    jvm = spark._jvm
    inner = [words(spark, *each).as_scala() for each in ("ab", "", "c")]
    options = JvmList(spark, jvm.java.util.ArrayList([jvm.scala.Some(each) for each in inner]))
    assert ["a", "b", "c"] == options.flattened("scala.Some.value").texts()


def test_elements_convert_to_scala_and_arrays(spark):
    assert ["a", "b"] == JvmList.of_scala(spark, words(spark, "a", "b").as_scala()).texts()
    assert ["a", "b"] == list(words(spark, "a", "b").as_array("java.lang.String"))


def test_each_element_is_passed_with_a_constant(spark):
    target = spark._jvm.java.util.HashMap()
    words(spark, "a", "b").pass_to(target, "java.util.Map.put", "java.lang.Object", spark._jvm.java.lang.Object())
    assert {"a", "b"} == set(target.keySet())


def test_unknown_method_is_a_java_error(spark):
    with pytest.raises(Exception, match="NoSuchMethodException"):
        words(spark, "a").texts("java.lang.String.nothing")
