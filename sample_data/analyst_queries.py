"""Sixty queries as analysts write them by hand: few keys, keys under functions, fields, other shapes: a1 to a60.

Texts run on Spark and on DuckDB; `_DIALECTS` has the expressions in which they differ. Times are those of UTC. Every
ORDER BY before a LIMIT ends with a unique column, so that each query has one right answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from sample_data.analyst import LISTED_VISITORS, customer_codes, customer_names, visitors
from sample_data.tpcds_queries import Query

# Customers whom lists name; all but the first of them are unknown at the smallest scales.
_LISTED = 200 + 311 * np.arange(20)
_NAMED = np.array([5, 170, 499])


def queries() -> tuple[Query, ...]:
    """All queries, by number."""
    lists = {
        "customers": _texts(customer_codes(_LISTED).to_pylist(), row=True),
        "names": _texts(customer_names(_NAMED).to_pylist()),
        "visitors": _texts(visitors(np.arange(3, 3 + LISTED_VISITORS)).to_pylist(), row=True),
    }
    found = []
    for number, text in enumerate((*_FEW_KEYS, *_FUNCTIONS, *_SHAPES), 1):
        spark, duckdb = (
            text.format_map(lists | {name: pair[at] for name, pair in _DIALECTS.items()}).strip() for at in (0, 1)
        )
        found.append(Query(number, spark, f"a{number}", duckdb if duckdb != spark else ""))
    return tuple(found)


def _texts(values: Sequence[str], *, row: bool = False) -> str:
    return ", ".join(f"('{each}')" if row else f"'{each}'" for each in values)


# An expression by Spark, and by DuckDB.
_DIALECTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "date_of_at": ("to_date(k.at)", "CAST(k.at AT TIME ZONE 'UTC' AS DATE)"),
        "cast_of_at": ("CAST(k.at AS DATE)", "CAST(k.at AT TIME ZONE 'UTC' AS DATE)"),
        "day_of_at": ("date_trunc('DAY', k.at)", "date_trunc('day', k.at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"),
        "hour_of_at": ("date_trunc('HOUR', k.at)", "date_trunc('hour', k.at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"),
        "month_of_at": ("date_trunc('MONTH', k.at)", "date_trunc('month', k.at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"),
        "year_of_at": ("year(k.at)", "year(k.at AT TIME ZONE 'UTC')"),
        "month_number_of_at": ("month(k.at)", "month(k.at AT TIME ZONE 'UTC')"),
        "text_of_at": ("date_format(k.at, 'yyyy-MM-dd')", "strftime(k.at AT TIME ZONE 'UTC', '%Y-%m-%d')"),
        "seconds_of_at": ("unix_timestamp(k.at)", "CAST(floor(epoch(k.at)) AS BIGINT)"),
        "seconds_of_start": ("unix_timestamp(c.starts_at)", "CAST(floor(epoch(c.starts_at)) AS BIGINT)"),
        "text_of_id": ("CAST(k.click_id AS STRING)", "CAST(k.click_id AS VARCHAR)"),
        "thousand_of_id": ("k.click_id DIV 1000", "k.click_id // 1000"),
        "customer_of_number": (
            "concat('C', lpad(string(v.customer_no), 7, '0'))",
            "concat('C', lpad(CAST(v.customer_no AS VARCHAR), 7, '0'))",
        ),
        "next_day": ("date_add(k.day, 1)", "k.day + 1"),
        "date_of_order": ("to_date(o.ordered_at)", "CAST(o.ordered_at AT TIME ZONE 'UTC' AS DATE)"),
        "ten": ("TIMESTAMP '2024-05-01 10:00:00+00:00'", "TIMESTAMPTZ '2024-05-01 10:00:00+00:00'"),
        "numbers": ("range(4, 9)", "(SELECT range AS id FROM range(4, 9))"),
    }
)

_FEW_KEYS = (
    # A list of customers in memory.
    """
SELECT count(*) AS orders, sum(o.amount) AS amount
FROM orders o JOIN (VALUES {customers}) AS p (customer) ON o.customer = p.customer
""",
    """
SELECT o.sku, count(*) AS orders FROM orders o
WHERE o.customer IN (SELECT customer FROM (VALUES {customers}) AS p (customer))
GROUP BY o.sku
""",
    # Keys that are computed from a small dimension.
    """
SELECT v.customer, count(*) AS orders, sum(o.amount) AS amount
FROM orders o JOIN vips v ON o.customer = {customer_of_number}
GROUP BY v.customer
""",
    # The first of all.
    """
WITH newest AS (
    SELECT customer
    FROM (SELECT customer, row_number() OVER (ORDER BY joined_on DESC, customer) AS place FROM customers)
    WHERE place <= 10
)
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN newest n ON o.customer = n.customer
""",
    """
WITH newest AS (SELECT customer FROM customers ORDER BY joined_on DESC, customer LIMIT 10)
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN newest n ON o.customer = n.customer
""",
    # Some of many customers.
    """
SELECT c.name, count(*) AS orders FROM orders o JOIN customers c ON o.customer = c.customer
WHERE c.name IN ({names}) GROUP BY c.name
""",
    """
SELECT c.name, sum(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.customer
WHERE c.name IN (SELECT name FROM customers WHERE customer_no IN (5, 170, 499)) GROUP BY c.name
""",
    """
SELECT c.name, max(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.customer
WHERE c.name LIKE 'Hana 1234%' GROUP BY c.name
""",
    """
SELECT c.region, count(*) AS orders FROM orders o JOIN customers c ON o.customer = c.customer
WHERE c.customer BETWEEN 'C0000100' AND 'C0000140' GROUP BY c.region
""",
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.customer
WHERE c.region = 7 AND o.sku < 100
""",
    # A small table of keys without a condition, by each type.
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN vips v ON o.customer = v.customer
""",
    """
SELECT o.customer, count(*) AS orders FROM orders o WHERE o.customer IN (SELECT customer FROM vips) GROUP BY o.customer
""",
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN vips v ON o.customer_no = v.customer_no
""",
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN vips v ON o.customer_code = v.code
""",
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN vips v ON o.customer_serial = v.serial
""",
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN vips v ON o.customer_weight = v.weight
""",
    """
SELECT v.customer, count(o.order_id) AS orders FROM vips v LEFT JOIN orders o ON v.customer = o.customer
GROUP BY v.customer
""",
    """
SELECT count(*) AS orders FROM orders o
WHERE EXISTS (SELECT 1 FROM vips v WHERE v.customer = o.customer AND v.customer_no % 2 = 1)
""",
    # Lists of UUIDs, which follow no order.
    """
SELECT k.visitor, count(*) AS clicks, max(k.milliseconds) AS slowest
FROM clicks k JOIN (VALUES {visitors}) AS p (visitor) ON k.visitor = p.visitor GROUP BY k.visitor
""",
    """
SELECT k.section, count(*) AS clicks FROM clicks k WHERE k.visitor IN (SELECT visitor FROM vips) GROUP BY k.section
""",
)

_FUNCTIONS = (
    """
SELECT c.day, count(*) AS clicks FROM clicks k JOIN calendar c ON {date_of_at} = c.day WHERE c.is_holiday GROUP BY c.day
""",
    """
SELECT k.section, count(*) AS clicks FROM clicks k
WHERE {cast_of_at} IN (SELECT day FROM calendar WHERE week = '2024-W20') GROUP BY k.section
""",
    """
SELECT c.day, count(*) AS clicks FROM clicks k JOIN calendar c ON {day_of_at} = c.starts_at
WHERE c.week = '2024-W33' GROUP BY c.day
""",
    """
SELECT h.day, count(*) AS clicks
FROM clicks k JOIN (SELECT day, starts_at + INTERVAL 9 HOURS AS begins FROM calendar WHERE is_holiday AND year = 2024) h
    ON {hour_of_at} = h.begins
GROUP BY h.day
""",
    """
SELECT c.month, count(*) AS clicks
FROM clicks k JOIN calendar c ON {month_of_at} = c.month_start AND c.month_start = c.starts_at
WHERE c.year = 2024 AND c.month IN (3, 4) GROUP BY c.month
""",
    """
SELECT m.year, m.month, count(*) AS clicks
FROM clicks k JOIN (SELECT DISTINCT year, month FROM calendar WHERE week = '2024-W10') m
    ON {year_of_at} = m.year AND {month_number_of_at} = m.month
GROUP BY m.year, m.month
""",
    """
SELECT c.day_text, count(*) AS clicks FROM clicks k JOIN calendar c ON {text_of_at} = c.day_text
WHERE c.is_holiday AND c.year = 2024 GROUP BY c.day_text
""",
    """
SELECT count(*) AS clicks, max(k.milliseconds) AS slowest FROM clicks k
JOIN (VALUES ('17'), ('4711'), ('9001'), ('123456')) AS p (id) ON {text_of_id} = p.id
""",
    """
SELECT count(*) AS clicks, max(k.milliseconds) AS slowest FROM clicks k
JOIN (VALUES ('17'), ('4711'), ('9001'), ('123456')) AS p (id) ON k.click_id = CAST(p.id AS BIGINT)
""",
    """
SELECT b.id, count(*) AS clicks FROM clicks k JOIN {numbers} b ON {thousand_of_id} = b.id GROUP BY b.id
""",
    """
SELECT b.id, count(*) AS clicks FROM clicks k JOIN {numbers} b ON floor(k.click_id / 1000) = b.id GROUP BY b.id
""",
    """
SELECT count(*) AS clicks, max(k.milliseconds) AS slowest FROM clicks k JOIN {numbers} b ON k.click_id + 1 = b.id
""",
    """
SELECT c.day, count(*) AS clicks FROM clicks k JOIN calendar c
    ON k.at + INTERVAL 1 DAY >= c.starts_at AND k.at + INTERVAL 1 DAY <= c.ends_at
WHERE c.is_holiday AND c.month = 12 GROUP BY c.day
""",
    """
SELECT c.day, count(*) AS clicks FROM clicks k JOIN calendar c
    ON {seconds_of_at} BETWEEN {seconds_of_start} AND {seconds_of_start} + 3599
WHERE c.week = '2024-W40' GROUP BY c.day
""",
    """
SELECT p.prefix, count(*) AS orders FROM orders o JOIN (VALUES ('C00001'), ('C00004')) AS p (prefix)
    ON substring(o.customer, 1, 6) = p.prefix
GROUP BY p.prefix
""",
    """
SELECT c.day, count(*) AS clicks FROM clicks k JOIN calendar c ON {next_day} = c.day WHERE c.is_holiday GROUP BY c.day
""",
    """
SELECT k.section, count(*) AS clicks FROM clicks k
WHERE EXISTS (SELECT 1 FROM calendar c WHERE c.day = {date_of_at} AND c.is_holiday AND c.month = 5) GROUP BY k.section
""",
    """
SELECT c.day, count(*) AS clicks FROM clicks k JOIN calendar c ON k.at BETWEEN c.starts_at AND c.ends_at
WHERE c.week = '2024-W27' GROUP BY c.day
""",
    """
SELECT p.name, count(*) AS clicks
FROM clicks k JOIN (
    VALUES ('spring', DATE '2024-03-28', DATE '2024-04-02'), ('may', DATE '2024-05-01', DATE '2024-05-03')
) AS p (name, first_day, last_day) ON {date_of_at} BETWEEN p.first_day AND p.last_day
GROUP BY p.name
""",
    """
SELECT o.customer, count(*) AS orders FROM orders o JOIN vips v ON o.customer = v.customer
JOIN calendar c ON {date_of_order} = c.day
WHERE c.year = 2024 AND c.month = 6 GROUP BY o.customer
""",
)

_SHAPES = (
    # Fields of structs.
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN vips v ON o.buyer.number = v.customer_no
""",
    """
SELECT k.session.channel AS channel, count(*) AS clicks FROM clicks k
WHERE k.session.id IN (SELECT customer_no + 1000 FROM vips) GROUP BY k.session.channel
""",
    # One condition or the other, and cases.
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o
WHERE o.customer IN (SELECT customer FROM vips)
    OR o.customer_no IN (SELECT customer_no FROM customers WHERE name IN ({names}))
""",
    """
SELECT o.sku, count(*) AS orders FROM orders o
WHERE o.customer IN (SELECT customer FROM vips) AND (o.sku < 10 OR o.sku IN (SELECT customer_no FROM vips))
GROUP BY o.sku
""",
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o
JOIN vips v ON CASE WHEN o.sku >= 0 THEN o.customer ELSE 'none' END = v.customer
""",
    """
SELECT count(*) AS orders, sum(o.amount) AS amount
FROM orders o JOIN vips v ON coalesce(o.customer_no, 0) = v.customer_no
""",
    # Neither side has a NULL.
    """
SELECT count(*) AS customers FROM customers c
WHERE c.customer_no < 500 AND c.customer_no NOT IN (SELECT o.customer_no FROM orders o WHERE o.sku < 50)
""",
    # Bounds by scalar subqueries.
    """
SELECT k.section, count(*) AS clicks FROM clicks k
WHERE k.at >= (SELECT max(starts_at) FROM calendar WHERE is_holiday) GROUP BY k.section
""",
    """
SELECT k.section, count(*) AS clicks FROM clicks k
WHERE k.day = (SELECT max(day) FROM calendar WHERE is_holiday) GROUP BY k.section
""",
    # Two years behind a view.
    """
WITH years AS (
    SELECT * FROM clicks WHERE day < DATE '2024-07-01'
    UNION ALL SELECT * FROM clicks WHERE day >= DATE '2024-07-01'
)
SELECT y.day, count(*) AS clicks FROM years y JOIN calendar c ON y.day = c.day WHERE c.week = '2024-W15' GROUP BY y.day
""",
    """
WITH years AS (
    SELECT * FROM clicks WHERE day < DATE '2024-07-01'
    UNION ALL SELECT * FROM clicks WHERE day >= DATE '2024-07-01'
)
SELECT y.section, y.click_id FROM years y JOIN calendar c ON y.day = c.day
WHERE c.week = '2024-W15' AND y.milliseconds < 60
""",
    # Days, by which the partitioned layout is partitioned.
    """
SELECT k.section, count(*) AS clicks FROM clicks k JOIN calendar c ON k.day = c.day WHERE c.is_holiday
GROUP BY k.section
""",
    """
SELECT count(DISTINCT k.visitor) AS visitors FROM clicks k
WHERE k.day IN (SELECT day FROM calendar WHERE week IN ('2024-W02', '2024-W40'))
""",
    """
SELECT k.day, count(*) AS clicks
FROM clicks k JOIN calendar c ON k.day = c.day AND k.at >= c.starts_at + INTERVAL 20 HOURS
WHERE c.week = '2024-W48' GROUP BY k.day
""",
    """
SELECT c.day, count(k.click_id) AS clicks FROM calendar c LEFT JOIN clicks k ON c.day_before = k.day
WHERE c.is_holiday GROUP BY c.day
""",
    # The keys of one fact for the other.
    """
SELECT count(*) AS orders, sum(o.amount) AS amount FROM orders o
WHERE o.customer_no IN (
    SELECT k.customer_no FROM clicks k
    WHERE k.at >= {ten} AND k.at < {ten} + INTERVAL 4 MINUTES
)
""",
    """
SELECT later.section, count(*) AS clicks
FROM clicks first JOIN clicks later ON first.session.id = later.session.id AND later.click_id > first.click_id
WHERE first.click_id BETWEEN 5000 AND 5200 GROUP BY later.section
""",
    """
SELECT o.customer, o.order_id, o.amount FROM orders o JOIN customers c ON o.customer = c.customer
WHERE c.joined_on = DATE '2022-03-03' AND c.region < 5 ORDER BY o.amount DESC, o.order_id LIMIT 20
""",
    """
SELECT k.section, count(*) AS clicks, count(DISTINCT o.customer) AS customers
FROM vips v JOIN orders o ON v.customer = o.customer
    JOIN clicks k ON k.customer_no = o.customer_no AND k.day = {date_of_order}
GROUP BY k.section
""",
    """
SELECT k.click_id, k.section FROM clicks k ORDER BY k.at DESC, k.click_id LIMIT 10
""",
)
