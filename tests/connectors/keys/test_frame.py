from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from connectors.jobs import runner as builds
from connectors.keys import frame as spark_keys
from connectors.keys.frame import KeyFrame, collect, collect_all
from connectors.keys.local import summary_of
from connectors.keys.worker import KeyColumns
from connectors.spark.session import option_confs
from pruning.errors import InvalidKeysError
from pruning.keys.summary import KeySummary
from pruning.options import CONF_PREFIX, PruningOptions
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.types import ValueType

pytestmark = pytest.mark.spark

NAN = float("nan")
OPTIONS = PruningOptions()
INT, TEXT = ValueType("int"), ValueType("string")
ZONES = ["UTC", "Asia/Kathmandu", "America/St_Johns", "Europe/Stockholm"]
# Year 1, the day before the calendar reform, 1850 when time zones had seconds, and the last microsecond of 9999.
MOMENTS = [-62135596800000000, -12219292800000001, -3786829932000000, -1, 0, 1, 253402300799999999, None]
CASES = [
    (pa.int8(), [-128, 127, None, 127]),
    (pa.int16(), [-32768, 32767]),
    (pa.int32(), [-(2**31), 2**31 - 1, None]),
    (pa.int64(), [-(2**63), 2**63 - 1, 0]),
    (pa.float32(), [NAN, -0.0, 0.0, math.inf, -1.5, None]),
    (pa.float64(), [NAN, -0.0, 5e-324, -math.inf, NAN, None]),
    (pa.bool_(), [True, False, None]),
    (pa.decimal128(7, 2), [Decimal("-99999.99"), Decimal("0.01"), None]),
    (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0000000001"), Decimal(0)]),
    (pa.string(), ["", "é", "\U0001f600", "z" * 40, "a\0", None, ""]),
    (pa.binary(), [b"", b"\xff\x00", None]),
]


@pytest.fixture(params=["on the driver", "in workers"], autouse=True)
def way(request, conf):
    """Runs each test with keys collected on the driver and in workers, which give equal summaries."""
    if request.param == "in workers":
        conf("spark.pruning.limits.driver_rows", "0")
        conf("spark.pruning.limits.driver_long_rows", "0")
    return request.param


def options_of(spark) -> PruningOptions:
    return PruningOptions.from_confs(option_confs(spark, CONF_PREFIX))


def collected(spark, df, options=None):
    result = collect(spark, df, options or options_of(spark), "k")
    assert isinstance(result, KeySummary), result
    return result


def facts(summary):
    return summary.columns, summary.rows, summary.null_rows, summary.distinct, summary.key_rows


def listed(summary):
    (domain,) = summary.domains
    return code.decode(domain.type, domain.ranges.points())


@pytest.mark.parametrize(("arrow_type", "values"), CASES, ids=[str(case[0]) for case in CASES])
def test_frame_keys_equal_local_keys(spark, arrow_type, values):
    array = pa.array(values, arrow_type)
    df = spark.createDataFrame(pa.table({"k": array})).repartition(3)
    result = collected(spark, df)
    assert facts(summary_of(array, result.types, OPTIONS, "k")) == facts(result)


def collected_by_one_job(spark, frame, options=None):
    """The summaries of all keys of a frame, collected by one job."""
    options = options or options_of(spark)
    (found,) = spark_keys.collected([frame], options, lambda wanted: builds.run_all(spark, wanted, timeout=100))
    return found


# Failure catalogue 105, 118: a row with NULL in another column has a key in this one, but no key tuple.
@pytest.mark.full
@pytest.mark.parametrize("partitions", [1, 3])
def test_keys_of_one_job_equal_those_of_separate_jobs(spark, partitions):
    rows = max(len(values) for _, values in CASES)
    columns = [pa.array([*values, *[None] * (rows - len(values))], arrow_type) for arrow_type, values in CASES]
    table = pa.table(columns, names=[f"c{at}" for at in range(len(columns))])
    df = spark.createDataFrame(table).repartition(partitions)
    types = [collected(spark, df.select(name)).types[0] for name in df.columns]
    places = [*((at,) for at in range(len(types))), (5, 0), (0, 8)]
    keys = tuple(KeyColumns(f"key {at}", each, tuple(types[it] for it in each)) for at, each in enumerate(places))
    found = collected_by_one_job(spark, KeyFrame(df, keys))
    alone = [collected(spark, df.select(*(df.columns[it] for it in each))) for each in places]
    assert [facts(each) for each in alone] == [facts(each) for each in found]
    assert [each.source for each in alone] == [each.source for each in found]


def test_keys_of_one_job_share_the_limit(spark):
    df = spark.range(0, 5000, 1, 3).selectExpr("cast(id as int) a", "cast(id % 3 as int) b", "'t' || id % 3 c")
    keys = tuple(KeyColumns("abc"[at], (at,), (type_,)) for at, type_ in enumerate((INT, INT, TEXT)))
    options = replace(options_of(spark), max_build_bytes=60_000)
    found = collected_by_one_job(spark, KeyFrame(df, keys), options)
    assert [None, 3, 3] == [each.distinct for each in found]
    assert [("KEYS_OVER_LIMIT", "a")] == [(it.code.name, it.subject) for each in found for it in each.reasons]
    assert found[0].domains[0].contains(0) is found[0].domains[0].contains(4999) is True


def test_failed_job_gives_no_keys(spark):
    df = spark.range(3).selectExpr("cast(id as int) a", "cast(1 / (id - 1) as int) b")
    keys = (KeyColumns("a", (0,), (INT,)), KeyColumns("b", (1,), (INT,)))
    reason = collected_by_one_job(spark, KeyFrame(df, keys))
    assert ("BUILD_RAISED", "a, b", "DIVIDE_BY_ZERO") == (reason.code.name, reason.subject, reason.detail)


def test_reasons_name_each_key_of_a_job(spark):
    df = spark.range(0, 20, 1, 2).where("rand() < 0.9").selectExpr("cast(id as int) a", "cast(id as int) b")
    keys = (KeyColumns("a", (0,), (INT,)), KeyColumns("b", (1,), (INT,)))
    found = collected_by_one_job(spark, KeyFrame(df, keys))
    assert [("UNREPEATABLE_KEYS", "a"), ("UNREPEATABLE_KEYS", "b")] == [
        (it.code.name, it.subject) for each in found for it in each.reasons
    ]


@pytest.mark.parametrize("zone", ZONES)
def test_timestamps_are_utc_microseconds_in_any_session_zone(spark, conf, zone):
    conf("spark.sql.session.timeZone", zone)
    numbers = spark.createDataFrame([(each,) for each in MOMENTS], "n bigint")
    columns = ["timestamp_micros(n)", "cast(timestamp_micros(n) as timestamp_ntz)", "cast(n div 86400000000 as int)"]
    zoned, _, days = (collected(spark, numbers.selectExpr(each)) for each in columns)
    dates = collected(spark, numbers.selectExpr("date_from_unix_date(cast(n div 86400000000 as int))"))
    present = sorted(each for each in MOMENTS if each is not None)
    assert (ValueType("timestamp"), present) == (zoned.types[0], zoned.domains[0].ranges.points().tolist())
    assert days.domains[0].ranges.points().tolist() == dates.domains[0].ranges.points().tolist()
    assert 1 == zoned.null_rows
    text = "timestamp_ntz'1850-01-01 00:00:00.000001'"
    local = collected(spark, spark.range(1).selectExpr(text))
    assert ["1850-01-01T00:00:00.000001"] == listed(local)


BUILDS = {
    "no partitions": (lambda spark: spark.createDataFrame(spark.sparkContext.emptyRDD(), "id long"), 0),
    "no rows": (lambda spark: spark.range(0, 9, 1, 3).where("id < 0"), 0),
    "known to be empty": (lambda spark: spark.range(9).where("1 = 0"), 0),
    "some partitions empty": (lambda spark: spark.range(0, 9, 1, 3).where("id < 2"), 2),
    "union": (lambda spark: spark.range(0, 9, 1, 3).union(spark.range(20, 25, 1, 2)), 14),
    "aggregation": (lambda spark: spark.range(0, 100, 1, 3).selectExpr("id % 7 id").distinct(), 7),
    "join without matches": (lambda spark: spark.range(9).join(spark.range(20, 30), "id"), 0),
    "limit": (lambda spark: spark.range(0, 100, 1, 3).limit(5), 5),
}


@pytest.mark.parametrize("aqe", ["true", "false"], ids=["aqe", "no aqe"])
@pytest.mark.parametrize("build", list(BUILDS))
def test_every_partition_reports_even_without_rows(spark, conf, aqe, build):
    conf("spark.sql.adaptive.enabled", aqe)
    make, expected = BUILDS[build]
    result = collected(spark, make(spark))
    assert (expected, expected, expected == 0) == (result.rows, result.distinct, result.is_none)


def test_partition_count_is_that_of_the_executed_plan(spark, way):
    partitions = collected(spark, spark.range(0, 9, 1, 5).where("id < 2")).partitions
    assert partitions == (5 if way == "in workers" else 1)


def test_columns_are_identified_by_position(spark):
    df = spark.range(3).selectExpr(
        "id", "id * 10 as id", "if(id = 1, null, cast(id as string)) as `a``.\n'; DROP`", "1 as ``"
    )
    result = collected(spark, df)
    assert ["bigint", "bigint", "string", "int"] == [str(each) for each in result.types]
    assert ([0, 2], [0, 20]) == tuple(domain.ranges.points().tolist() for domain in result.domains[:2])
    assert (3, 1, 2) == (result.rows, result.null_rows, result.distinct)


def test_keys_over_the_limit_become_bounds_and_bloom_filter(spark):
    options = options_of(spark).with_limits(max_build_keys=100)
    result = collected(spark, spark.range(0, 1000, 1, 4).selectExpr("id * 1000 as id"), options)
    assert (None, 1000) == (result.distinct, result.rows)
    assert Domain.between(ValueType("bigint"), 0, 999_000) == result.domains[0].span()
    assert [False, True] == sorted(result.domains[0].contains(value) for value in (999_000, 999_001 + 2**20))
    assert "KEYS_OVER_LIMIT" == result.reasons[0].code.name


@pytest.mark.parametrize(
    ("expression", "code_name"),
    [
        ("array(id)", "UNSUPPORTED_TYPE"),
        ("interval 1 day", "UNSUPPORTED_TYPE"),
        ("null", "UNSUPPORTED_TYPE"),
        ("cast(id as string) collate UTF8_LCASE", "COLLATED"),
    ],
)
def test_unsupported_key_types_are_a_reason(spark, expression, code_name):
    reason = collect(spark, spark.range(3).selectExpr("id", f"{expression} as odd"), options_of(spark), "k")
    assert (code_name, "k") == (reason.code.name, reason.subject)
    assert "'odd'" in reason.detail


def test_frame_without_columns_is_refused(spark):
    with pytest.raises(InvalidKeysError, match="without columns"):
        collect(spark, spark.range(3).select(), options_of(spark), "k")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("cast(concat('secret', id) as int)", "CAST_INVALID_INPUT"), ("1 / (id - 1)", "DIVIDE_BY_ZERO")],
)
def test_failure_is_one_line_without_values(spark, expression, expected):
    reason = collect(spark, spark.range(3).selectExpr(expression), options_of(spark), "k")
    assert ("BUILD_RAISED", expected) == (reason.code.name, reason.detail)


def test_failure_in_python_names_only_the_error(spark):
    def failing(batches):
        for _ in batches:
            raise KeyError("secret")
        yield from ()

    reason = collect(spark, spark.range(3).mapInArrow(failing, "id long"), options_of(spark), "k")
    assert ("BUILD_FAILED", "KeyError in a Python worker") == (reason.code.name, reason.detail)


def test_failed_build_does_not_affect_other_builds(spark):
    frames = [
        (spark.range(3), "a"),
        (spark.range(3).selectExpr("1 / (id - 1)"), "b"),
        (spark.range(3).selectExpr("array(id)"), "c"),
    ]
    first, *others = collect_all(spark, frames, options_of(spark))
    assert isinstance(first, KeySummary)
    assert ["BUILD_RAISED", "UNSUPPORTED_TYPE"] == [reason.code.name for reason in others]


@pytest.mark.full
def test_delta_version_is_the_one_that_was_read(spark, tmp_path):
    path = str(tmp_path / "table")
    spark.range(0, 3).write.format("delta").save(path)
    frame = spark.read.format("delta").load(path)
    spark.range(3, 5).write.format("delta").mode("append").save(path)
    latest = collected(spark, frame)
    assert (1, ["UNPINNED_KEYS"]) == (latest.version, [reason.code.name for reason in latest.reasons])
    assert [0, 1, 2, 3, 4] == listed(latest)
    pinned = collected(spark, spark.read.format("delta").option("versionAsOf", 0).load(path))
    assert (0, (), [0, 1, 2]) == (pinned.version, pinned.reasons, listed(pinned))
    old = spark.read.format("delta").option("versionAsOf", 0).load(path)
    both = collected(spark, frame.join(old, "id"))
    assert ([0, 1, 2], [0]) == (listed(both), list(both.versions.values()))


@pytest.mark.parametrize(
    ("make", "detail"),
    [
        (lambda df: df.where("rand() < 0.9"), "it is not deterministic"),
        (lambda df: df.repartition(2).limit(5), "it has a GlobalLimit"),
        (lambda df: df.sample(0.5, seed=1), "it has a Sample"),
    ],
    ids=["rand", "limit", "sample"],
)
def test_unrepeatable_keys_have_a_reason(spark, make, detail):
    (reason,) = collected(spark, make(spark.range(0, 20, 1, 2))).reasons
    assert ("UNREPEATABLE_KEYS", detail) == (reason.code.name, reason.detail)


def test_source_text_is_short(spark):
    assert "DataFrame(id)" == collected(spark, spark.range(1)).source
    assert 80 == len(collected(spark, spark.range(1).selectExpr("id as " + "x" * 200)).source)
