"""Twenty queries over page views, as analysts write them: e1 to e20.

Texts run on Spark and on DuckDB; where their dialects differ, a query has two. Lists of users come from Python, as from
a notebook. Every ORDER BY before a LIMIT ends with a unique column, so that each query has one right answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sample_data.events_draws import user_ids
from sample_data.tpcds_queries import Query

# Every third of the first users, who are the same at each scale.
_TICKETS = (90, 3)
_FEW_CAMPAIGNS = tuple(range(11, 400, 37))


def queries() -> tuple[Query, ...]:
    """All queries, by number."""
    first, step = _TICKETS
    users = ", ".join(f"'{each}'" for each in user_ids(first).to_pylist()[::step])
    campaigns = ", ".join(map(str, _FEW_CAMPAIGNS))
    found = []
    for number, text in enumerate(_TEXTS, 1):
        name = f"e{number}"
        spark, duckdb = (
            each.strip().replace(":users", users).replace(":campaigns", campaigns)
            for each in (text, _IN_DUCKDB.get(name, ""))
        )
        found.append(Query(number, spark, name, duckdb))
    return tuple(found)


_SEASON_BY_DAY = """
SELECT v.event_date, count(*) AS views, count(DISTINCT v.user_id) AS users, sum(v.revenue) AS revenue
FROM page_views v JOIN calendar c ON v.event_date = c.day
WHERE c.season = 'black_friday'
GROUP BY v.event_date
ORDER BY v.event_date
"""

_CAMPAIGNS_IN_THEIR_PERIOD = """
SELECT p.name, count(*) AS views, count(DISTINCT v.session_id) AS sessions, coalesce(sum(v.revenue), 0) AS revenue
FROM page_views v JOIN campaigns p ON v.campaign_id = p.campaign_id AND v.event_date BETWEEN p.start_date AND p.end_date
WHERE p.channel = 'email' AND p.start_date BETWEEN DATE '2024-06-01' AND DATE '2024-06-30'
GROUP BY p.name
ORDER BY revenue DESC, p.name
LIMIT 20
"""

_TENANTS_WITHOUT_BOTS = """
SELECT v.tenant_id, count(*) AS views, count(DISTINCT v.user_id) AS users
FROM page_views v
WHERE v.event_date >= DATE '2025-01-05'
  AND NOT EXISTS (SELECT 1 FROM bots b WHERE b.user_id = v.user_id)
GROUP BY v.tenant_id
ORDER BY views DESC, v.tenant_id
LIMIT 10
"""

_HISTORY_OF_USERS = """
SELECT user_id, count(*) AS views, count(DISTINCT session_id) AS sessions, max(event_date) AS last_day
FROM page_views
WHERE user_id IN (:users)
GROUP BY user_id
"""

_CLICKS_OF_CAMPAIGNS = """
SELECT p.campaign_id, p.name, count(*) AS views, sum(CASE WHEN v.event_date > p.end_date THEN 1 ELSE 0 END) AS late
FROM campaigns p JOIN page_views v ON p.campaign_id = v.campaign_id
WHERE p.campaign_id IN (:campaigns)
GROUP BY p.campaign_id, p.name
"""

_SECTIONS_OF_SOME_USERS = """
SELECT v.page.section AS section, count(*) AS views, avg(v.duration_ms) AS duration
FROM page_views v
WHERE v.user_id IN (SELECT user_id FROM users WHERE country IN ('IS', 'SE') AND plan IN ('pro', 'enterprise'))
GROUP BY v.page.section
"""

_SESSIONS_BY_GAPS = """
WITH gaps AS (
    SELECT user_id, event_time,
        lag(event_time) OVER (PARTITION BY user_id ORDER BY event_time, view_id) AS before
    FROM page_views
    WHERE tenant_id = 2 AND event_date BETWEEN DATE '2024-09-02' AND DATE '2024-09-08'
)
SELECT user_id, count(*) AS views,
    sum(CASE WHEN before IS NULL OR event_time > before + INTERVAL '30' MINUTE THEN 1 ELSE 0 END) AS visits
FROM gaps
GROUP BY user_id
ORDER BY visits DESC, views DESC, user_id
LIMIT 50
"""

_FUNNEL = """
WITH steps AS (
    SELECT v.session_id, p.channel,
        max(CASE WHEN v.page.section = 'product' THEN 1 ELSE 0 END) AS product,
        max(CASE WHEN v.page.section = 'cart' THEN 1 ELSE 0 END) AS cart,
        max(CASE WHEN v.page.section = 'checkout' THEN 1 ELSE 0 END) AS checkout
    FROM page_views v
        JOIN campaigns p ON v.campaign_id = p.campaign_id
        JOIN calendar c ON v.event_date = c.day
    WHERE c.season = 'summer_sale'
    GROUP BY v.session_id, p.channel
)
SELECT channel, count(*) AS sessions, sum(product) AS product, sum(product * cart) AS cart,
    sum(product * cart * checkout) AS checkout
FROM steps
GROUP BY channel
"""

_PAID_AND_ORGANIC = """
SELECT coalesce(p.channel, 'organic') AS channel, count(*) AS views, count(DISTINCT v.user_id) AS users,
    sum(v.revenue) AS revenue
FROM page_views v LEFT JOIN campaigns p ON v.campaign_id = p.campaign_id AND v.event_date <= p.end_date
WHERE v.event_date BETWEEN DATE '2024-10-01' AND DATE '2024-10-31'
GROUP BY coalesce(p.channel, 'organic')
"""

_RETENTION = """
SELECT v.event_date, count(DISTINCT v.user_id) AS users
FROM users u JOIN page_views v ON u.user_id = v.user_id
WHERE u.signup_date BETWEEN DATE '2024-05-06' AND DATE '2024-05-12'
  AND v.event_date BETWEEN u.signup_date AND u.signup_date + 27
GROUP BY v.event_date
ORDER BY v.event_date
"""

_IOS_IN_A_COUNTRY = """
SELECT v.device.browser AS browser, u.plan, count(*) AS views, count(DISTINCT u.user_id) AS users
FROM page_views v JOIN users u ON v.user_id = u.user_id
WHERE v.device.os = 'ios' AND u.country = 'PL' AND u.profile.language = 'en'
  AND v.event_date BETWEEN DATE '2024-11-01' AND DATE '2024-11-30'
GROUP BY v.device.browser, u.plan
"""

_TAGS_OF_A_SEASON = """
SELECT tag, count(*) AS views
FROM (
    SELECT explode(v.tags) AS tag
    FROM page_views v JOIN calendar c ON v.event_date = c.day
    WHERE c.season = 'easter'
) tagged
GROUP BY tag
"""
_TAGS_OF_A_SEASON_IN_DUCKDB = _TAGS_OF_A_SEASON.replace("explode", "unnest")

_EXPERIMENT = """
SELECT v.properties['variant'] AS variant, count(DISTINCT v.session_id) AS sessions, count(v.revenue) AS sales,
    sum(v.revenue) AS revenue
FROM page_views v JOIN users u ON v.user_id = u.user_id
WHERE u.plan = 'trial' AND array_contains(v.tags, 'sale')
  AND v.event_date BETWEEN DATE '2024-08-01' AND DATE '2024-08-14'
GROUP BY v.properties['variant']
"""

_ROLLING_WEEK = """
WITH days AS (
    SELECT tenant_id, event_date, count(*) AS views
    FROM page_views
    WHERE tenant_id IN (SELECT tenant_id FROM users WHERE plan = 'enterprise' GROUP BY tenant_id HAVING count(*) >= 3)
    GROUP BY tenant_id, event_date
)
SELECT tenant_id, event_date, views,
    sum(views) OVER (PARTITION BY tenant_id ORDER BY event_date ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week
FROM days
ORDER BY week DESC, tenant_id, event_date
LIMIT 100
"""

_TOP_PAGES = """
WITH pages AS (
    SELECT c.season, v.page.path AS path, count(*) AS views
    FROM page_views v JOIN calendar c ON v.event_date = c.day
    WHERE c.season IN ('christmas', 'winter_sale') AND v.status = 200
    GROUP BY c.season, v.page.path
), ranked AS (
    SELECT season, path, views, row_number() OVER (PARTITION BY season ORDER BY views DESC, path) AS place
    FROM pages
)
SELECT season, place, path, views
FROM ranked
WHERE place <= 5
ORDER BY season, place
"""

_FIRST_TOUCH = """
WITH buyers AS (
    SELECT user_id, sum(revenue) AS revenue
    FROM page_views
    WHERE revenue > 100 AND event_date BETWEEN DATE '2024-12-01' AND DATE '2024-12-07'
    GROUP BY user_id
), touches AS (
    SELECT v.user_id, v.campaign_id, row_number() OVER (PARTITION BY v.user_id ORDER BY v.view_id) AS touch
    FROM page_views v JOIN buyers b ON v.user_id = b.user_id
    WHERE v.campaign_id IS NOT NULL
)
SELECT coalesce(p.channel, 'none') AS channel, count(*) AS buyers, sum(b.revenue) AS revenue
FROM buyers b
    LEFT JOIN touches t ON b.user_id = t.user_id AND t.touch = 1
    LEFT JOIN campaigns p ON t.campaign_id = p.campaign_id
GROUP BY coalesce(p.channel, 'none')
"""

_INACTIVE_USERS = """
SELECT u.country, count(*) AS users
FROM users u LEFT JOIN (
    SELECT DISTINCT user_id FROM page_views WHERE event_date BETWEEN DATE '2024-12-16' AND DATE '2025-01-15'
) v ON u.user_id = v.user_id
WHERE v.user_id IS NULL AND u.plan IN ('pro', 'enterprise') AND u.signup_date < DATE '2024-12-16'
GROUP BY u.country
"""

_VIEWS_OF_BOTS = """
SELECT v.event_date, count(*) AS views, count(DISTINCT v.user_id) AS bots
FROM page_views v
WHERE EXISTS (
    SELECT 1 FROM bots b WHERE b.user_id = v.user_id AND b.reason <> 'monitoring' AND b.listed_on <= v.event_date
)
GROUP BY v.event_date
"""

_HOURS_OF_WEEKENDS = """
SELECT c.weekday, hour(v.event_time) AS hour, count(*) AS views
FROM page_views v JOIN calendar c ON v.event_date = c.day
WHERE c.is_weekend AND c.year = 2024 AND c.month IN (2, 3) AND v.tenant_id = 1
GROUP BY c.weekday, hour(v.event_time)
"""

_TWO_SEASONS = """
SELECT v.tenant_id,
    sum(CASE WHEN c.season = 'black_friday' THEN v.revenue ELSE 0 END) AS autumn,
    sum(CASE WHEN c.season = 'summer_sale' THEN v.revenue ELSE 0 END) AS summer
FROM page_views v JOIN calendar c ON v.event_date = c.day
WHERE c.season IN ('black_friday', 'summer_sale') AND v.revenue IS NOT NULL
  AND v.user_id NOT IN (SELECT user_id FROM bots)
GROUP BY v.tenant_id
HAVING sum(CASE WHEN c.season = 'black_friday' THEN v.revenue ELSE 0 END)
    > sum(CASE WHEN c.season = 'summer_sale' THEN v.revenue ELSE 0 END)
ORDER BY autumn DESC, v.tenant_id
LIMIT 25
"""

_TEXTS = (
    *(_SEASON_BY_DAY, _CAMPAIGNS_IN_THEIR_PERIOD, _TENANTS_WITHOUT_BOTS, _HISTORY_OF_USERS, _CLICKS_OF_CAMPAIGNS),
    *(_SECTIONS_OF_SOME_USERS, _SESSIONS_BY_GAPS, _FUNNEL, _PAID_AND_ORGANIC, _RETENTION),
    *(_IOS_IN_A_COUNTRY, _TAGS_OF_A_SEASON, _EXPERIMENT, _ROLLING_WEEK, _TOP_PAGES),
    *(_FIRST_TOUCH, _INACTIVE_USERS, _VIEWS_OF_BOTS, _HOURS_OF_WEEKENDS, _TWO_SEASONS),
)
_IN_DUCKDB: Mapping[str, str] = MappingProxyType({"e12": _TAGS_OF_A_SEASON_IN_DUCKDB})
