"""The star joins that the demo runs: what a join's keys can skip, and where they cannot."""

from __future__ import annotations

from connectors.star_join import Dimension, StarJoin

FACT = "store_sales"
TABLES = (FACT, "date_dim", "item", "store")

_SOLD_ON, _SOLD_IN, _SOLD = ("ss_sold_date_sk",), ("ss_store_sk",), ("ss_item_sk",)
_DAY, _STORE, _ITEM = ("d_date_sk",), ("s_store_sk",), ("i_item_sk",)
_MONTH = Dimension(_SOLD_ON, _DAY, "{date_dim}", "d_year = 2001 AND d_moy = 12")
_TICKETS = (17, 404, 1209, 2750, 3999, 4711, 5150, 6021, 7777, 8128, 9001, 11235)

JOINS = (
    StarJoin(
        "one month",
        "clustered by date: only the month's files are opened",
        FACT,
        "i_brand",
        "count(*) AS sold, sum(ss_ext_sales_price) AS price",
        (_MONTH, Dimension(_SOLD, _ITEM, "{item}")),
    ),
    StarJoin(
        "three keys",
        "dates skip files; stores and items thin out rows before the joins",
        FACT,
        "i_class",
        "count(*) AS sold, sum(ss_net_profit) AS profit",
        (
            _MONTH,
            Dimension(_SOLD_IN, _STORE, "{store}", "s_store_name = 'ought'"),
            Dimension(_SOLD, _ITEM, "{item}", "i_category = 'Music'"),
        ),
    ),
    StarJoin(
        "Christmas",
        "a range for each year; exact=True leaves no join to do",
        FACT,
        "ss_store_sk",
        "count(*) AS sold, sum(ss_net_paid) AS paid",
        (Dimension(_SOLD_ON, _DAY, "{date_dim}", "d_moy = 12 AND d_dom = 24"),),
        exact=True,
    ),
    StarJoin(
        "ticket list",
        "Python values; all files span them, dictionaries rule most out",
        FACT,
        "ss_ticket_number",
        "count(*) AS lines, sum(ss_net_paid) AS paid",
        (Dimension(("ss_ticket_number",), ("ticket",), values=_TICKETS),),
    ),
    StarJoin(
        "items alone",
        "sold on every day: nothing to skip, so planning is for nothing",
        FACT,
        "i_item_id",
        "count(*) AS sold, sum(ss_quantity) AS quantity",
        (Dimension(_SOLD, _ITEM, "{item}", "i_category = 'Books' AND i_class = 'travel'"),),
    ),
    StarJoin(
        "no store",
        "no keys, so nothing is read; stock Spark finds that out, too",
        FACT,
        "s_city",
        "count(*) AS sold",
        (Dimension(_SOLD_IN, _STORE, "{store}", "s_store_name = 'closed long ago'"),),
    ),
)
