"""`ScanAbilities`: what a scan can do with a decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pruning.ranges import RangeSet
from pruning.reasons import ReasonCode


@dataclass(frozen=True, slots=True)
class ScanAbilities:
    """What the scan can do with a decision: each limit is a fact about the format, session or request.

    - `names_files`: kept files are named to the reader, so that ranges need not skip them
    - `push_refusal`: why no literal predicate may reach storage statistics, None where one may
    - `tests_bloom`: the engine can probe a bloom filter
    - `must_be_exact`: the caller asked for the semijoin, without false positives
    - `widen`: a column, ranges -> ranges under which storage, that compares bounds as stored, skips soundly
    - `file_only`: columns on which the reader of files takes no predicate, so that it skips none of their row groups
    - `pushes_blindly`: no file can be known, so that ranges are pushed though nothing tells what they skip
    """

    names_files: bool
    push_refusal: ReasonCode | None
    tests_bloom: bool
    must_be_exact: bool
    widen: Callable[[str, RangeSet], RangeSet]
    file_only: frozenset[str] = frozenset()
    pushes_blindly: bool = False
