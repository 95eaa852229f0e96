"""`PruningOptions`: defaults, Spark confs, and values that are out of range."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import pytest

from pruning.errors import InvalidOptionError, PruningError
from pruning.keys.cache import PruningCache
from pruning.limits import LIMITS, Limits
from pruning.options import CONF_PREFIX, PruningOptions, option_names

ROOT = Path(__file__).resolve().parents[2]
FIELDS = tuple(each.name for each in fields(PruningOptions))
RANGED = tuple(each for each in fields(PruningOptions) if "least" in each.metadata)


def test_defaults_without_confs():
    assert PruningOptions() == PruningOptions.from_confs({"spark.app.name": "x", "spark.pruningmax_ranges": "1"})


def test_each_field_has_a_spark_conf():
    texts = {f"spark.pruning.{name}": str(getattr(PruningOptions(), name)) for name in FIELDS if name != "limits"}
    texts |= {f"spark.pruning.limits.{each.name}": str(getattr(LIMITS, each.name)) for each in fields(Limits)}
    assert {f"spark.pruning.{name}" for name in option_names()} == texts.keys()
    assert PruningOptions(limits=replace(LIMITS, page_share=0.001953)) == PruningOptions.from_confs(
        texts | {"spark.pruning.limits.page_share": "0.001953"}
    )


def test_there_are_eight_options():
    expected = {
        "enabled", "max_build_bytes", "always", "build_timeout_seconds", "broadcast_strategy", "top_k",
        "cost_rates", "limits",
    }  # fmt: skip
    assert expected == set(FIELDS)


def test_conf_sets_a_limit():
    found = PruningOptions.from_confs({"spark.pruning.limits.max_ranges": "7", "spark.pruning.top_k": "false"})
    assert PruningOptions(top_k=False).with_limits(max_ranges=7) == found


@pytest.mark.parametrize("each", fields(Limits), ids=lambda each: each.name)
def test_each_limit_has_unit_reason_and_off_value(each):
    assert each.metadata["unit"]
    assert len(each.metadata["why"].split()) > 4
    off = getattr(LIMITS.without(each.name), each.name)
    assert each.metadata["off"] == off
    assert (off == each.default) == (each.name == "costs")
    assert type(off) in {type(each.default), int}


def test_unknown_limit_cannot_be_turned_off():
    with pytest.raises(InvalidOptionError, match=r"Cannot turn off 'max_rangs': expected some of .*max_build_keys,"):
        LIMITS.without("max_rangs")


def test_unknown_conf_is_refused():
    with pytest.raises(
        InvalidOptionError, match=r"Cannot set 'spark.pruning.max_rangs': expected one of enabled, .* after"
    ):
        PruningOptions.from_confs({"spark.pruning.max_rangs": "3"})


def test_conf_of_a_constant_is_refused_as_unknown():
    with pytest.raises(
        InvalidOptionError, match=r"Cannot set 'spark.pruning.limits.poll_seconds': expected one of enabled, .* after"
    ):
        PruningOptions.from_confs({"spark.pruning.limits.poll_seconds": "1", "spark.pruning.limits.max_ranges": "3"})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param("enabled", "false", False, id="switch"),
        pytest.param("enabled", " TRUE ", True, id="switch-in-capitals"),
        pytest.param("max_build_bytes", "7", 7, id="integer"),
        pytest.param("max_build_bytes", " 1024 ", 1024, id="spaces"),
        pytest.param("max_build_bytes", "8MiB", 8 << 20, id="mebibytes"),
        pytest.param("max_build_bytes", "512k", 512 << 10, id="kibibytes"),
        pytest.param("max_build_bytes", "1 GB", 1 << 30, id="gibibytes"),
        pytest.param("max_build_bytes", "150MB", 150 << 20, id="megabytes-are-powers-of-two"),
        pytest.param("build_timeout_seconds", "1e-3", 0.001, id="number"),
        pytest.param("build_timeout_seconds", "120s", 120.0, id="seconds"),
        pytest.param("build_timeout_seconds", "2min", 120.0, id="minutes"),
        pytest.param("build_timeout_seconds", "5", 5.0, id="integer-as-number"),
        pytest.param("cost_rates", "machine", "MACHINE", id="rates-in-small-letters"),
        pytest.param("broadcast_strategy", " runtime_only ", "RUNTIME_ONLY", id="word-in-small-letters"),
    ],
)
def test_conf_sets_only_its_field(name, text, expected):
    found = PruningOptions.from_confs({CONF_PREFIX + name: text})
    assert PruningOptions(**{name: expected}) == found


# The units of `JavaUtils.byteStringAs` and `JavaUtils.timeStringAs` of Spark.
@pytest.mark.parametrize(
    ("unit", "expected"),
    [("", 1), ("b", 1)]
    + [(unit, 1 << 10 * power) for power, letter in enumerate("kmg", 1) for unit in (letter, f"{letter}b")],
)
def test_size_is_given_as_spark_writes_it(unit, expected):
    for text in (f"7{unit}", f"7{unit.upper()}", f" 7 {unit} "):
        assert 7 * expected == PruningOptions(max_build_bytes=text).max_build_bytes
        assert 7 * expected == PruningOptions().with_limits(bitmap_filter_bytes=text).limits.bitmap_filter_bytes
        assert 7 * expected == PruningOptions.from_confs({f"{CONF_PREFIX}max_build_bytes": text}).max_build_bytes
        assert 7 * expected == PruningCache(max_bytes=text).max_bytes


@pytest.mark.parametrize(("unit", "power"), [("t", 40), ("tb", 40), ("P", 50), ("PB", 50)])
def test_size_may_have_the_largest_units(unit, power):
    assert 7 << power == PruningOptions().with_limits(task_bytes=f"7{unit}").limits.task_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", 5), ("0.5", 0.5), ("5s", 5), ("5 S", 5), ("2m", 120), ("2min", 120), ("1h", 3600), ("1d", 86_400),
     ("250ms", 0.25), ("250000us", 0.25)],
)  # fmt: skip
def test_duration_is_given_as_spark_writes_it(text, expected):
    options = PruningOptions(build_timeout_seconds=text).with_limits(all_builds_timeout_seconds=text)
    assert pytest.approx(expected) == options.build_timeout_seconds
    assert options.build_timeout_seconds == options.limits.all_builds_timeout_seconds
    found = PruningOptions.from_confs({f"{CONF_PREFIX}build_timeout_seconds": text})
    assert options.build_timeout_seconds == found.build_timeout_seconds


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("max_build_bytes", "lots", "a number from 1 to 68719476736 or a size such as 8MiB"),
        ("max_build_bytes", "1.5g", "a number from 1 to 68719476736 or a size such as 8MiB"),
        ("max_build_bytes", "", "a number from 1 to 68719476736 or a size such as 8MiB"),
        ("max_build_bytes", "8mm", "a number from 1 to 68719476736 or a size such as 8MiB"),
        ("build_timeout_seconds", "2 hours", "a number from 0.001 to 86400.0 or a duration such as 2min"),
        ("build_timeout_seconds", "nan s", "a number from 0.001 to 86400.0 or a duration such as 2min"),
        ("build_timeout_seconds", "", "a number from 0.001 to 86400.0 or a duration such as 2min"),
    ],
)
def test_text_that_is_no_size_or_duration_is_refused(name, text, expected):
    with pytest.raises(InvalidOptionError) as caught:
        PruningOptions(**{name: text})
    assert f"Cannot set {name!r} to {text!r}: expected {expected}" == str(caught.value)
    with pytest.raises(InvalidOptionError) as caught:
        PruningOptions.from_confs({CONF_PREFIX + name: text})
    assert f"Cannot set {CONF_PREFIX + name!r} to {text!r}: expected {expected}" == str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("max_build_bytes", "1pb", f"{1 << 50}: expected a number from 1 to 68719476736"),
        ("max_build_bytes", "0k", "0: expected a number from 1 to 68719476736"),
        ("build_timeout_seconds", "2d", "172800.0: expected a number from 0.001 to 86400.0"),
    ],
)
def test_range_counts_for_text(name, text, expected):
    with pytest.raises(InvalidOptionError, match=f"Cannot set '{name}' to {expected}"):
        PruningOptions(**{name: text})


@pytest.mark.parametrize("each", RANGED, ids=lambda each: each.name)
def test_range_of_an_option_is_inclusive(each):
    least, most = each.metadata["least"], each.metadata["most"]
    for value in (least, most):
        assert value == getattr(PruningOptions(**{each.name: value}), each.name)
    for value in (least - 1, most + 1):
        with pytest.raises(InvalidOptionError) as caught:
            PruningOptions(**{each.name: value})
        assert f"Cannot set {each.name!r} to {value!r}: expected a number from {least} to {most}" == str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("max_build_bytes", 1.5, id="fraction-for-integer"),
        pytest.param("max_build_bytes", b"7", id="bytes"),
        pytest.param("max_build_bytes", True, id="bool-for-integer"),
        pytest.param("max_build_bytes", None, id="none"),
        pytest.param("build_timeout_seconds", float("nan"), id="nan"),
        pytest.param("build_timeout_seconds", float("inf"), id="infinity"),
        pytest.param("limits", {"max_ranges": 3}, id="dict-for-limits"),
        pytest.param("enabled", 1, id="number-for-switch"),
        pytest.param("enabled", "true", id="text-for-switch"),
        pytest.param("broadcast_strategy", "auto", id="small-letters"),
        pytest.param("broadcast_strategy", None, id="none-for-word"),
    ],
)
def test_value_of_wrong_type_is_refused(name, value):
    with pytest.raises(InvalidOptionError, match=f"Cannot set '{name}' to "):
        PruningOptions(**{name: value})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param("limits.max_ranges", "many", "a number from 1 to 1000", id="word"),
        pytest.param("limits.max_ranges", "", "a number", id="empty"),
        pytest.param("limits.max_ranges", "1.5", "a number", id="fraction"),
        pytest.param("limits.max_ranges", "9" * 5000, "a number", id="too-long-to-read"),
        pytest.param("limits.bloom_fpp", "1%", "a number", id="percent"),
        pytest.param("limits.bloom_fpp", "nan", "a number from", id="nan"),
        pytest.param("enabled", "yes", "true or false", id="yes"),
        pytest.param("limits.max_in_list", "-1", "a number from 0 to 10000", id="below"),
        pytest.param("cost_rates", "MEASURED", "one of SESSION, MACHINE, GIVEN", id="unknown-rates"),
        pytest.param("broadcast_strategy", "ALWAYS", "one of AUTO, RUNTIME_ONLY, NONE", id="unknown-word"),
    ],
)
def test_invalid_conf_error_names_conf_text_and_remedy(name, text, expected):
    with pytest.raises(InvalidOptionError) as caught:
        PruningOptions.from_confs({CONF_PREFIX + name: text})
    assert str(caught.value).startswith(f"Cannot set {CONF_PREFIX + name!r} to ")
    assert f"expected {expected}" in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "word"), [(None, "SESSION"), ("", "SESSION"), (" machine ", "MACHINE"), ("GIVEN", "GIVEN")]
)
def test_environment_sets_the_default_of_rates(variable, word):
    environment = {name: text for name, text in os.environ.items() if name != "SCANPRUNE_COST_RATES"}
    if variable is not None:
        environment["SCANPRUNE_COST_RATES"] = variable
    program = "from pruning.options import PruningOptions; print(PruningOptions().cost_rates)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert word == done.stdout.strip()


def test_tests_use_given_rates():
    assert "GIVEN" == PruningOptions().cost_rates


def test_unknown_option_error_lists_known_options():
    with pytest.raises(
        InvalidOptionError, match=r"Cannot set 'maxranges': expected one of enabled, .*top_k, or limits.<name>"
    ):
        PruningOptions().with_texts({"maxranges": "3"})


def test_options_are_frozen_and_raise_pruning_error():
    with pytest.raises(FrozenInstanceError):
        PruningOptions().enabled = False
    with pytest.raises(PruningError):
        PruningOptions().with_limits(max_ranges=0)


def test_limit_of_an_unknown_name_is_refused_with_a_similar_one():
    with pytest.raises(InvalidOptionError, match="limits 'max_footer': expected a limit such as 'max_footers'"):
        PruningOptions().with_limits(max_footer=3)
    with pytest.raises(InvalidOptionError, match=r"'zzz': expected a field of pruning\.limits\.Limits"):
        PruningOptions().with_limits(zzz=3)
