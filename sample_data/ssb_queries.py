"""The 13 queries of the Star Schema Benchmark, with the texts of its paper (revision 3), in four flights."""

from __future__ import annotations

from sample_data.tpcds_queries import Query

# A flight has one text; its queries differ in the conditions on dimensions, and in the columns by which they group.
_FLIGHT_1 = """select sum(lo_extendedprice*lo_discount) as revenue
from lineorder, date
where lo_orderdate = d_datekey
"""

_FLIGHT_2 = """select sum(lo_revenue), d_year, p_brand1
from lineorder, date, part, supplier
where lo_orderdate = d_datekey
and lo_partkey = p_partkey
and lo_suppkey = s_suppkey
"""
_GROUPED_2 = """group by d_year, p_brand1
order by d_year, p_brand1"""

_FLIGHT_3 = """select c_{0}, s_{0}, d_year, sum(lo_revenue) as revenue
from customer, lineorder, supplier, date
where lo_custkey = c_custkey
and lo_suppkey = s_suppkey
and lo_orderdate = d_datekey
"""
_GROUPED_3 = """group by c_{0}, s_{0}, d_year
order by d_year asc, revenue desc"""

_FLIGHT_4 = """select {0}, sum(lo_revenue - lo_supplycost) as profit
from date, customer, supplier, part, lineorder
where lo_custkey = c_custkey
and lo_suppkey = s_suppkey
and lo_partkey = p_partkey
and lo_orderdate = d_datekey
and c_region = 'AMERICA'
"""
_GROUPED_4 = """group by {0}
order by {0}"""

_UNITED_KINGDOM = """and (c_city='UNITED KI1' or c_city='UNITED KI5')
and (s_city='UNITED KI1' or s_city='UNITED KI5')
"""
_YEARS_1997_AND_1998 = "and (d_year = 1997 or d_year = 1998)\n"
_TWO_MANUFACTURERS = "and (p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2')\n"
_SIX_YEARS = "and d_year >= 1992 and d_year <= 1997\n"


def queries() -> tuple[Query, ...]:
    """All queries: q1.1 to q4.3."""
    return tuple(Query(number, text, f"q{name}") for number, (name, text) in enumerate(_TEXTS.items(), 1))


def _flight_1(conditions: str) -> str:
    return f"{_FLIGHT_1}{conditions}"


def _flight_2(conditions: str) -> str:
    return f"{_FLIGHT_2}{conditions}\n{_GROUPED_2}"


def _flight_3(level: str, conditions: str) -> str:
    return f"{_FLIGHT_3.format(level)}{conditions}{_GROUPED_3.format(level)}"


def _flight_4(columns: str, conditions: str) -> str:
    return f"{_FLIGHT_4.format(columns)}{conditions}{_GROUPED_4.format(columns)}"


_TEXTS = {
    "1.1": _flight_1("and d_year = 1993\nand lo_discount between 1 and 3\nand lo_quantity < 25"),
    "1.2": _flight_1("and d_yearmonthnum = 199401\nand lo_discount between 4 and 6\nand lo_quantity between 26 and 35"),
    "1.3": _flight_1(
        "and d_weeknuminyear = 6 and d_year = 1994\nand lo_discount between 5 and 7\nand lo_quantity between 26 and 35"
    ),
    "2.1": _flight_2("and p_category = 'MFGR#12'\nand s_region = 'AMERICA'"),
    "2.2": _flight_2("and p_brand1 between 'MFGR#2221' and 'MFGR#2228'\nand s_region = 'ASIA'"),
    "2.3": _flight_2("and p_brand1 = 'MFGR#2221'\nand s_region = 'EUROPE'"),
    "3.1": _flight_3("nation", f"and c_region = 'ASIA' and s_region = 'ASIA'\n{_SIX_YEARS}"),
    "3.2": _flight_3("city", f"and c_nation = 'UNITED STATES' and s_nation = 'UNITED STATES'\n{_SIX_YEARS}"),
    "3.3": _flight_3("city", f"{_UNITED_KINGDOM}{_SIX_YEARS}"),
    "3.4": _flight_3("city", f"{_UNITED_KINGDOM}and d_yearmonth = 'Dec1997'\n"),
    "4.1": _flight_4("d_year, c_nation", f"and s_region = 'AMERICA'\n{_TWO_MANUFACTURERS}"),
    "4.2": _flight_4(
        "d_year, s_nation, p_category", f"and s_region = 'AMERICA'\n{_YEARS_1997_AND_1998}{_TWO_MANUFACTURERS}"
    ),
    "4.3": _flight_4(
        "d_year, s_city, p_brand1",
        f"and s_nation = 'UNITED STATES'\n{_YEARS_1997_AND_1998}and p_category = 'MFGR#14'\n",
    ),
}
