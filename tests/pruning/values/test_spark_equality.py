"""`tests/pruning/spark_equality.py`, the oracle for coercion, compared with Spark's `=`."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations

import pytest
from pyspark.sql.types import StructType

from pruning.values.types import ValueType
from sample_data.confs import conf
from tests.pruning.samples import Spec, decimal, nasty
from tests.pruning.spark_equality import DAY, HOUR, as_single, modes, near, some_key_equals

PAIRS = (
    *(("bigint", "float"), ("int", "float"), ("float", "bigint"), ("float", "int"), ("double", "bigint")),
    *(("bigint", "double"), ("double", "float"), ("decimal(5,2)", "float"), ("decimal(18,4)", "double")),
    *(("double", "decimal(38,10)"), ("float", "decimal(5,2)"), ("decimal(38,0)", "bigint"), ("int", "decimal(18,4)")),
    *(("decimal(18,4)", "decimal(5,2)"), ("bigint", "tinyint")),
)
_TIES = {"bigint": ((1 << 60) + (1 << 36) + 1, (1 << 53) + 1), "int": ((1 << 24) + 1,)}


def _of(type_: ValueType, value: object) -> object:
    return Decimal(value) if type_.name == "decimal" else float(value) if type_.is_float else int(value)


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"], ids=["ansi", "not-ansi"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]} = {pair[1]}")
def test_number_oracle_matches_spark_equality(spark, pair, ansi):
    source, column = map(ValueType.parse, pair)
    keys = [*nasty(source), *_TIES.get(source.name, ())]
    keys += [decimal(source, 10), decimal(source, 50)] if source.name == "decimal" else []
    specs = [Spec(source, ((key, key),)) for key in keys]
    mode = next(
        (mode for mode in modes(source, column) if mode is as_single and ansi == "false"), modes(source, column)[0]
    )
    rows = [(spec, value) for spec in specs for value in dict.fromkeys(near(spec, column))]
    schema = StructType.fromDDL(f"k {source}, v {column}")
    with conf(spark, {"spark.sql.ansi.enabled": ansi}):
        frame = spark.createDataFrame(
            [(_of(source, spec.pairs[0][0]), _of(column, value)) for spec, value in rows], schema
        )
        found = [row[0] for row in frame.selectExpr("k = v").collect()]
    assert [some_key_equals(spec, column, value, mode) for spec, value in rows] == found


@pytest.mark.spark
@pytest.mark.parametrize(
    ("zone", "offset"), [("UTC", 0), ("+18:00", 18 * HOUR), ("-18:00", -18 * HOUR), ("Asia/Kathmandu", 23 * HOUR // 4)]
)
def test_date_and_timestamp_oracle_matches_spark_equality(spark, zone, offset):
    days = (-1, 0, 1, 18_000, 18_001)
    micros = sorted({18_000 * DAY + shift + step for shift in (0, offset, -offset) for step in (-1, 0, 1)})
    literals = {
        "date": {day: f"date_from_unix_date({day})" for day in days},
        "timestamp": {each: f"timestamp_micros({each})" for each in micros},
        "timestamp_ntz": {each: f"TIMESTAMP_NTZ '1970-01-01' + {_interval(each)}" for each in micros},
    }
    cases = [
        (Spec(ValueType(source), ((key, key),)), ValueType(column), value, f"{left} = {right}")
        for source, column in permutations(literals, 2)
        for key, left in literals[source].items()
        for value, right in literals[column].items()
    ]
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        found = spark.range(1).selectExpr(f"array({', '.join(case[-1] for case in cases)})").first()[0]
    assert [some_key_equals(keys, column, value, offset) for keys, column, value, _ in cases] == found


def _interval(micros: int) -> str:
    days, rest = divmod(micros, DAY)
    return f"make_dt_interval({days}, 0, 0, CAST('{rest // 10**6}.{rest % 10**6:06d}' AS DECIMAL(18,6)))"
