"""`JoinType`: what each type of join does with the rows of its two sides.

| type | needs match | stands alone | every row | at most once | padded | broadcast | conditions |
|---|---|---|---|---|---|---|---|
| Inner, Cross | both | both | | | | both | both |
| LeftOuter | right | left | left | | right | right | right |
| RightOuter | left | right | right | | left | left | left |
| FullOuter | | | both | | both | | |
| LeftSemi | both | left | | left | | right | both |
| LeftAnti | right | left | | left | | right | right |
| ExistenceJoin | right | left | left | left | | right | |
| LeftSingle | right | | left | left | right | right | right |

LeftSemi, LeftAnti and ExistenceJoin are made of `IN` and `EXISTS`, after Spark has inferred conditions from joins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class JoinSide:
    """The rows of one side of a join.

    - `needs_match`: a row without a match does not reach the result
    - `stands_alone`: removing a row removes the results of that row, and changes no other
    - `keeps_every_row`: each row gives one row of the result or more
    - `at_most_once`: each row gives one row of the result or none
    - `is_padded`: the result has rows with NULL in place of this side
    - `may_be_broadcast`: Spark can build a hash table of it
    - `gets_conditions`: Spark copies conditions on equal columns of the other side to it
    """

    needs_match: bool = False
    stands_alone: bool = False
    keeps_every_row: bool = False
    at_most_once: bool = False
    is_padded: bool = False
    may_be_broadcast: bool = False
    gets_conditions: bool = False


@dataclass(frozen=True, slots=True)
class JoinType:
    """The two sides of a type of join; nothing holds for a side of an unknown type.

    - `is_late`: Spark may have made it of a subquery, after it has inferred conditions from the joins of a query
    - `is_scalar`: it raises an error if a row of the left side has a second match
    """

    left: JoinSide = JoinSide()
    right: JoinSide = JoinSide()
    is_late: bool = False
    is_scalar: bool = False

    @staticmethod
    def of(name: str) -> JoinType:
        """The type with Spark's name for it."""
        return JOIN_TYPES.get(name, _UNKNOWN)


_UNKNOWN = JoinType(is_late=True)
_BOTH = JoinSide(needs_match=True, stands_alone=True, may_be_broadcast=True, gets_conditions=True)
_KEPT = JoinSide(stands_alone=True, keeps_every_row=True)
_PADDED = JoinSide(needs_match=True, is_padded=True, may_be_broadcast=True, gets_conditions=True)
_MATCHED = JoinSide(needs_match=True, may_be_broadcast=True, gets_conditions=True)
_FULL = JoinSide(keeps_every_row=True, is_padded=True)

JOIN_TYPES: Mapping[str, JoinType] = MappingProxyType(
    {
        "Inner": JoinType(_BOTH, _BOTH),
        "Cross": JoinType(_BOTH, _BOTH),
        "LeftOuter": JoinType(_KEPT, _PADDED),
        "RightOuter": JoinType(_PADDED, _KEPT),
        "FullOuter": JoinType(_FULL, _FULL),
        "LeftSemi": JoinType(
            JoinSide(needs_match=True, stands_alone=True, at_most_once=True, gets_conditions=True),
            _MATCHED,
            is_late=True,
        ),
        "LeftAnti": JoinType(JoinSide(stands_alone=True, at_most_once=True), _MATCHED, is_late=True),
        "ExistenceJoin": JoinType(
            JoinSide(stands_alone=True, keeps_every_row=True, at_most_once=True),
            JoinSide(needs_match=True, may_be_broadcast=True),
            is_late=True,
        ),
        # A correlated scalar subquery.
        "LeftSingle": JoinType(JoinSide(keeps_every_row=True, at_most_once=True), _PADDED, is_scalar=True),
    }
)
