"""How long the Java code is that Spark makes of a predicate: the JVM never compiles a method of more than 8,000 bytes.

All that a stage does with a row is one method, so a predicate has to leave room. Rows of a method that is interpreted
take ten times as long: three million of them 8.5 s where 64 ranges were compared, and 0.8 s where that was compiled.
"""

from __future__ import annotations

from pruning.domain import Domain

# Bytes of two comparisons; of a value of a list that becomes a `switch`, and of a list that becomes a set.
_RANGE, _VALUE, _SET = 75, 16, 100
# `spark.sql.optimizer.inSetSwitchThreshold`, as it is by default.
_MOST_IN_SWITCH = 400
_SWITCHED = frozenset({"tinyint", "smallint", "int", "date"})
_ROOM = 5_500


def has_room(ranges: int, listed: Domain | None = None) -> bool:
    """Whether a stage has room for so many ranges, and a list of the values of `listed` beside them."""
    return ranges * _RANGE + (0 if listed is None else _list(listed)) <= _ROOM


def _list(listed: Domain) -> int:
    values = listed.ranges.point_count() or 0
    return values * _VALUE if listed.type.name in _SWITCHED and values <= _MOST_IN_SWITCH else _SET
