"""Star joins modelled on TPC-DS queries: their dimensions and constants, with one fact table each."""

from __future__ import annotations

from benchmarks.demo.star_join import Dimension, StarJoin

_SS_DATE, _SS_ITEM, _SS_STORE = ("ss_sold_date_sk",), ("ss_item_sk",), ("ss_store_sk",)
_CS_DATE, _CS_ITEM = ("cs_sold_date_sk",), ("cs_item_sk",)
_INV_DATE, _INV_ITEM = ("inv_date_sk",), ("inv_item_sk",)
_DAY, _ITEM, _STORE = ("d_date_sk",), ("i_item_sk",), ("s_store_sk",)
_PEOPLE, _HOUSEHOLD, _PROMOTION = ("cd_demo_sk",), ("hd_demo_sk",), ("p_promo_sk",)

_COLLEGE = "cd_gender = 'M' AND cd_marital_status = 'S' AND cd_education_status = 'College'"
_NO_PROMOTION = "p_channel_email = 'N' OR p_channel_event = 'N'"
_CATEGORIES = "i_category IN ('Sports', 'Books', 'Home')"
_SPRING = "d_date BETWEEN DATE '1999-02-22' AND DATE '1999-03-24'"
_TWO_MONTHS = "d_date BETWEEN DATE '2000-02-10' AND DATE '2000-04-10'"
_TICKETS_RETURNED = "{store_returns} JOIN {date_dim} ON sr_returned_date_sk = d_date_sk"

JOINS = (
    StarJoin(
        "q3",
        "one month of each year, items of one maker",
        "store_sales",
        "d_year, i_brand_id",
        "sum(ss_ext_sales_price) AS price",
        (
            Dimension(_SS_DATE, _DAY, "{date_dim}", "d_moy = 11"),
            Dimension(_SS_ITEM, _ITEM, "{item}", "i_manufact_id = 128"),
        ),
    ),
    StarJoin(
        "q7",
        "one year, one kind of customer",
        "store_sales",
        "i_item_id",
        "count(*) AS sold, sum(ss_quantity) AS quantity, sum(ss_list_price) AS price",
        (
            Dimension(("ss_cdemo_sk",), _PEOPLE, "{customer_demographics}", _COLLEGE),
            Dimension(_SS_DATE, _DAY, "{date_dim}", "d_year = 2000"),
            Dimension(("ss_promo_sk",), _PROMOTION, "{promotion}", _NO_PROMOTION),
            Dimension(_SS_ITEM, _ITEM, "{item}"),
        ),
    ),
    StarJoin(
        "q19",
        "one month, items of one manager",
        "store_sales",
        "i_brand_id",
        "sum(ss_ext_sales_price) AS price",
        (
            Dimension(_SS_DATE, _DAY, "{date_dim}", "d_moy = 11 AND d_year = 1998"),
            Dimension(_SS_ITEM, _ITEM, "{item}", "i_manager_id = 8"),
        ),
    ),
    StarJoin(
        "q34",
        "first and last days of months in three years",
        "store_sales",
        "ss_ticket_number, ss_customer_sk",
        "count(*) AS sold",
        (
            Dimension(
                _SS_DATE,
                _DAY,
                "{date_dim}",
                "(d_dom BETWEEN 1 AND 3 OR d_dom BETWEEN 25 AND 28) AND d_year IN (1999, 2000, 2001)",
            ),
            Dimension(
                ("ss_hdemo_sk",),
                _HOUSEHOLD,
                "{household_demographics}",
                "hd_buy_potential IN ('>10000', 'Unknown') AND hd_vehicle_count > 0 AND hd_dep_count > 6",
            ),
            Dimension(_SS_STORE, _STORE, "{store}", "s_store_name = 'ese'"),
        ),
    ),
    StarJoin(
        "q96",
        "three keys, none of them clustered",
        "store_sales",
        "s_store_name",
        "count(*) AS sold",
        (
            Dimension(("ss_sold_time_sk",), ("t_time_sk",), "{time_dim}", "t_hour = 20 AND t_minute >= 30"),
            Dimension(("ss_hdemo_sk",), _HOUSEHOLD, "{household_demographics}", "hd_dep_count = 7"),
            Dimension(_SS_STORE, _STORE, "{store}", "s_store_name = 'ese'"),
        ),
    ),
    StarJoin(
        "q98",
        "thirty days, three categories",
        "store_sales",
        "i_item_id, i_class",
        "sum(ss_ext_sales_price) AS price",
        (
            Dimension(_SS_ITEM, _ITEM, "{item}", _CATEGORIES),
            Dimension(_SS_DATE, _DAY, "{date_dim}", _SPRING),
        ),
    ),
    StarJoin(
        "q29",
        "sales that were returned in one month: pairs of ticket and item",
        "store_sales",
        "ss_store_sk",
        "count(*) AS sold, sum(ss_quantity) AS quantity, sum(sr_return_quantity) AS returned",
        (
            Dimension(
                ("ss_ticket_number", "ss_item_sk"),
                ("sr_ticket_number", "sr_item_sk"),
                _TICKETS_RETURNED,
                "d_year = 1999 AND d_moy = 9",
            ),
        ),
    ),
    StarJoin(
        "q20",
        "thirty days, three categories, by catalogue",
        "catalog_sales",
        "i_item_id, i_class",
        "sum(cs_ext_sales_price) AS price",
        (
            Dimension(_CS_ITEM, _ITEM, "{item}", _CATEGORIES),
            Dimension(_CS_DATE, _DAY, "{date_dim}", _SPRING),
        ),
    ),
    StarJoin(
        "q26",
        "one year, one kind of customer, by catalogue",
        "catalog_sales",
        "i_item_id",
        "count(*) AS sold, sum(cs_quantity) AS quantity, sum(cs_list_price) AS price",
        (
            Dimension(("cs_bill_cdemo_sk",), _PEOPLE, "{customer_demographics}", _COLLEGE),
            Dimension(_CS_DATE, _DAY, "{date_dim}", "d_year = 2000"),
            Dimension(("cs_promo_sk",), _PROMOTION, "{promotion}", _NO_PROMOTION),
            Dimension(_CS_ITEM, _ITEM, "{item}"),
        ),
    ),
    StarJoin(
        "q12",
        "thirty days, three categories, on the web",
        "web_sales",
        "i_item_id, i_class",
        "sum(ws_ext_sales_price) AS price",
        (
            Dimension(("ws_item_sk",), _ITEM, "{item}", _CATEGORIES),
            Dimension(("ws_sold_date_sk",), _DAY, "{date_dim}", _SPRING),
        ),
    ),
    StarJoin(
        "q21",
        "two months of stock of cheap items",
        "inventory",
        "w_warehouse_name",
        "sum(inv_quantity_on_hand) AS quantity",
        (
            Dimension(_INV_ITEM, _ITEM, "{item}", "i_current_price BETWEEN 0.99 AND 1.49"),
            Dimension(_INV_DATE, _DAY, "{date_dim}", _TWO_MONTHS),
            Dimension(("inv_warehouse_sk",), ("w_warehouse_sk",), "{warehouse}"),
        ),
    ),
)

TABLES = (
    *("store_sales", "catalog_sales", "web_sales", "inventory", "store_returns"),
    *("customer_demographics", "date_dim", "household_demographics", "item", "promotion"),
    *("store", "time_dim", "warehouse"),
)
