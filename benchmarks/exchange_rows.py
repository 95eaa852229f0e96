"""The exchanges of an executed query with the rows that they sent, from Spark's store of plans and metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

SHUFFLE, BROADCAST = "Exchange", "BroadcastExchange"
# The metric with the rows of each kind of exchange.
_ROWS = {SHUFFLE: "shuffle records written", BROADCAST: "number of output rows"}
_IDS = re.compile(r"#\d+L?")
_MOST_TEXT = 120


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange that ran: its kind, its partitioning without ids of columns, and the rows that it sent."""

    kind: str
    text: str
    rows: int

    def to_json(self) -> dict[str, Any]:
        """The exchange as an object of a row."""
        return {"kind": self.kind, "text": self.text, "rows": self.rows}


def exchanges_of(store: Any, executions: Iterable[Any]) -> Iterator[Exchange]:
    """The exchanges of finished executions that sent rows, from Spark's store of plans and metrics."""
    for execution in executions:
        number = int(execution.executionId())
        nodes, values, seen = store.planGraph(number).allNodes(), store.executionMetrics(number), set[int]()
        for node in (nodes.apply(at) for at in range(nodes.size())):
            kind = str(node.name())
            wanted = _ROWS.get(kind)
            metrics = (node.metrics().apply(at) for at in range(node.metrics().size()))
            ids = [int(each.accumulatorId()) for each in metrics if str(each.name()) == wanted]
            for each in ids:
                if each not in seen and values.contains(each):
                    seen.add(each)
                    rows = rows_of(str(values.apply(each)))
                    if rows:
                        yield Exchange(kind, without_ids(str(node.desc())), rows)


def rows_of(told: str) -> int:
    """Rows of a metric in Spark's format.

    >>> rows_of("2,880,404")
    2880404
    """
    return int(told.replace(",", ""))


def without_ids(text: str) -> str:
    """The text of an exchange without ids of columns and plans.

    >>> without_ids("Exchange hashpartitioning(ss_item_sk#12, 2), ENSURE_REQUIREMENTS, [plan_id=77]")
    'hashpartitioning(ss_item_sk, 2)'
    """
    plain = _IDS.sub("", text).partition(" ")[2]
    return plain.partition(", ENSURE_REQUIREMENTS")[0].partition(", [plan_id=")[0][:_MOST_TEXT]
