"""ORs of IN and EXISTS: files and row groups without a key of any operand are skipped, and no row is lost."""

from __future__ import annotations

import pytest

from pruning import explain
from tests.catalogue.facts import files, refusal_codes
from tests.costs import PLANNED_SCANS

pytestmark = pytest.mark.spark

FORMATS = ("delta", "parquet")
ROWS, FILES = 1600, 8
# 200 rows in each file; `id` and `code` ascend, `back` descends, `mixed` follows no order.
VISITS = (
    "id",
    "if(id % 7 = 3, NULL, id) AS maybe",
    "1599 - id AS back",
    "id * 7919 % 1600 AS mixed",
    "concat('C', lpad(cast(id AS string), 6, '0')) AS code",
    "cast(id / 10 AS decimal(12, 2)) AS price",
    "date_add(date'2024-01-01', cast(id div 10 AS int)) AS `a.day`",
    "named_struct('number', id) AS visitor",
)
KEYS = (
    "id",
    "id * 150 AS number",
    "id * 15 AS tens",
    "if(id = 2, NULL, id * 150) AS some",
    "concat('C', lpad(cast(id * 150 AS string), 6, '0')) AS code",
    "cast(id * 15 AS decimal(9, 1)) AS price",
    "date_add(date'2024-01-01', cast(id * 15 AS int)) AS day",
)
ONE, OTHER, NONE = "id = 2", "id IN (3, 9)", "id > 90"


@pytest.fixture(scope="module", autouse=True)
def visits(spark, stored):
    rows = spark.range(0, ROWS, 1, FILES).selectExpr(*VISITS)
    for format_ in FORMATS:
        stored(f"visits_{format_}", rows, format_)
    stored("keys_of_visits", spark.range(0, 11, 1, 1).selectExpr(*KEYS))


def keys(column: str, condition: str) -> str:
    return f"(SELECT {column} FROM keys_of_visits WHERE {condition})"


@pytest.mark.quick(4)
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        # Keys 300 in file 1, and 450 and 1350 from the end in files 5 and 1, or in files 2 and 6.
        pytest.param(f"v.id IN {keys('number', ONE)} OR v.back IN {keys('number', OTHER)}", 2, id="two columns"),
        pytest.param(f"v.id IN {keys('number', ONE)} OR v.code IN {keys('code', OTHER)}", 3, id="number or text"),
        pytest.param(f"v.price IN {keys('price', ONE)} OR v.`a.day` IN {keys('day', OTHER)}", 3, id="decimal or date"),
        pytest.param(f"v.visitor.number IN {keys('number', ONE)} OR v.code IN {keys('code', OTHER)}", 3, id="a field"),
        pytest.param(f"v.id IN {keys('number', ONE)} OR v.id IN {keys('number', OTHER)}", 3, id="one column"),
        pytest.param(
            f"v.id IN {keys('number', ONE)} OR EXISTS {keys('1', f'code = v.code AND {OTHER}')}",
            3,
            id="in or exists",
        ),
        pytest.param(
            f"(v.id IN {keys('number', ONE)} AND v.mixed > 3) OR (v.code IN {keys('code', OTHER)} AND v.id > 0)",
            3,
            id="with further conditions",
        ),
        pytest.param(
            f"v.id IN {keys('number', ONE)} OR v.code IN {keys('code', OTHER)} OR v.back IN {keys('number', 'id = 1')}",
            4,
            id="three",
        ),
        pytest.param(f"v.id IN {keys('number', ONE)} OR v.code IN {keys('code', NONE)}", 1, id="one without keys"),
        pytest.param(f"v.id IN {keys('number', NONE)} OR v.code IN {keys('code', NONE)}", 0, id="none with keys"),
        pytest.param(f"v.maybe IN {keys('some', 'id < 3')} OR v.code IN {keys('code', OTHER)}", 3, id="keys with null"),
        pytest.param(
            f"(v.id IN {keys('number', ONE)} OR v.code IN {keys('code', OTHER)}) AND v.id IN {keys('number', OTHER)}",
            2,
            id="beside keys of its own",
        ),
        pytest.param(f"v.id DIV 10 IN {keys('tens', ONE)} OR v.code IN {keys('code', OTHER)}", 3, id="a function"),
    ],
)
def test_files_without_a_key_of_any_operand_are_skipped(agreed, format_, condition, kept):
    query = f"SELECT v.id, v.back FROM visits_{format_} v WHERE {condition}"
    df, result = agreed(query, PLANNED_SCANS, by_duck=False)
    assert (0 < df.count()) is (kept > 0)
    assert {f"visits_{format_}": kept} == files(result)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM visits_delta v WHERE {0}",
        "SELECT mixed % 5 AS m, sum(id) FROM visits_delta v WHERE {0} GROUP BY 1",
        "SELECT v.id, k.id AS k FROM visits_delta v JOIN keys_of_visits k ON v.mixed = k.number WHERE {0}",
        "SELECT v.id, k.id AS k FROM visits_delta v LEFT JOIN keys_of_visits k ON v.id = k.number WHERE {0}",
        "SELECT k.id FROM keys_of_visits k WHERE k.number IN (SELECT id FROM visits_delta v WHERE {0})",
        "SELECT id FROM visits_delta v WHERE {0} UNION ALL SELECT id FROM keys_of_visits",
        "SELECT id FROM (SELECT id, code, max(mixed) AS m FROM visits_delta GROUP BY id, code) v WHERE {0}",
    ],
    ids=["aggregate", "groups", "join", "outer join", "below in", "union", "above groups"],
)
def test_shapes_around_an_or(agreed, query):
    either = f"(v.id IN {keys('number', ONE)} OR v.code IN {keys('code', OTHER)})"
    _, result = agreed(query.format(either), PLANNED_SCANS, by_duck=False)
    assert {"visits_delta": 3} == files(result)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (f"v.id IN {keys('number', ONE)} OR v.mixed IN {keys('number', OTHER)}", "NOT_WORTH"),
        (f"v.id NOT IN {keys('number', ONE)} OR v.code IN {keys('code', OTHER)}", "KEYLESS_OPERAND"),
        (f"v.id IN {keys('number', ONE)} OR v.mixed = 7", "KEYLESS_OPERAND"),
        (f"v.id IN {keys('number', ONE)} OR upper(v.code) IN {keys('code', OTHER)}", "COMPUTED"),
    ],
    ids=["no order", "not in", "a condition without keys", "a computed key"],
)
def test_or_that_skips_nothing_has_a_reason(agreed, condition, code):
    df, result = agreed(f"SELECT v.id FROM visits_delta v WHERE {condition}", PLANNED_SCANS, by_duck=False)
    assert 0 < df.count()
    assert {} == files(result)
    assert code in refusal_codes(df, result)


def test_words_name_both_keys(agreed):
    query = f"SELECT id FROM visits_delta v WHERE id IN {keys('number', ONE)} OR code IN {keys('code', OTHER)}"
    df, result = agreed(query, PLANNED_SCANS, by_duck=False)
    assert explain(df, options=PLANNED_SCANS).verdict == (
        "keys are still to come: visits_delta.id by keys_of_visits#1.number, or another key of the OR; "
        "visits_delta.code by keys_of_visits#2.code, or another key of the OR"
    )
    assert explain(result).verdict.endswith("visits_delta.id, code by keys_of_visits#1.number or keys_of_visits#2.code")
    assert "reads 3 of 8 files" in explain(result).verdict
