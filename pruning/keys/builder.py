"""`KeyBuilder`: collects keys batch by batch, in one process or in many, and ends in a `KeySummary`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pruning.errors import PruningError
from pruning.keys.key_set import NAN_CODE, KeyLimits, KeySet, pack, unpack
from pruning.keys.summary import KeyColumn, KeyRows, KeySummary
from pruning.reasons import Reason, ReasonCode
from pruning.values.domain import Domain
from pruning.values.encoding import Codes
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType


class IncompleteBuildError(PruningError):
    """Keys of some partition are missing, or came twice: a summary of them would lose or invent rows."""


class CodedColumn(Protocol):
    """Values of one column: `codes` counts only where `valid`; a value that is neither valid nor `nan` is NULL."""

    @property
    def type(self) -> ValueType: ...  # noqa: D102
    @property
    def codes(self) -> Codes: ...  # noqa: D102
    @property
    def valid(self) -> npt.NDArray[np.bool_]: ...  # noqa: D102
    @property
    def nan(self) -> npt.NDArray[np.bool_]: ...  # noqa: D102


class KeyBuilder:
    """Keys of `types` seen so far, within `limits`; not thread-safe.

    Each partition of a build has its own builder: `add` its batches, then `close` it. Closed builders `merge`
    in any order, also by way of `to_bytes`, and `finish` gives the summary once every partition is there.

    >>> from pruning.options import PruningOptions
    >>> builder = KeyBuilder([ValueType("bigint")], KeyLimits.of(PruningOptions()))
    >>> builder.close(partition=0)
    >>> builder.finish(2, source="two partitions")
    Traceback (most recent call last):
    ...
    pruning.keys.builder.IncompleteBuildError: Cannot finish the keys of two partitions: expected 2 partitions, found 1
    >>> print(builder.finish(1, source="one partition"))
    0 different keys (bigint) in 0 rows
    """

    def __init__(self, types: Sequence[ValueType], limits: KeyLimits) -> None:
        if not types:
            msg = "Cannot build keys of no columns: expected at least one type"
            raise ValueError(msg)
        self.types, self.limits = tuple(types), limits
        self.rows = self.null_rows = 0
        self.nulls, self.nans = [0] * len(types), [0] * len(types)
        self._reported: set[int] = set()
        self._is_open = False
        single = len(types) == 1
        share = limits if single else limits.shared(len(types) + 1)
        self._columns = [KeySet([type_], share, with_bloom=single) for type_ in self.types]
        self._tuples = self._columns[0] if single else KeySet(self.types, share, with_bloom=True)

    def add(self, columns: Sequence[CodedColumn]) -> None:
        """Takes a batch of rows, one array of codes for each key column."""
        self._check_batch(columns)
        present = [column.valid | column.nan for column in columns]
        complete = np.logical_and.reduce(present)
        kept = np.flatnonzero(complete)
        self._is_open = True
        self.rows += len(complete)
        self.null_rows += len(complete) - len(kept)
        for at, column in enumerate(columns):
            self.nulls[at] += len(complete) - int(np.count_nonzero(present[at]))
            self.nans[at] += int(np.count_nonzero(column.nan))
        codes = tuple(_with_nan(column) for column in columns)
        self._add_codes(codes if len(kept) == len(complete) else tuple(each.take(kept) for each in codes))

    def _add_codes(self, codes: tuple[Codes, ...]) -> None:
        for keys, column in zip(self._columns, codes, strict=True):
            keys.add((column,))
        if self._tuples is not self._columns[0]:
            self._tuples.add(codes)

    def _check_batch(self, columns: Sequence[CodedColumn]) -> None:
        found = tuple(column.type for column in columns)
        lengths = {len(column.valid) for column in columns}
        if found != self.types or len(lengths) != 1:
            msg = (
                f"Cannot add keys of {_names(found)} in columns of {sorted(lengths)} rows: "
                f"expected {_names(self.types)}, all of one length"
            )
            raise ValueError(msg)

    def close(self, partition: int) -> None:
        """Declares that the rows added so far are all rows of this partition."""
        if partition in self._reported or partition < 0:
            msg = f"Cannot report partition {partition}: it was reported before"
            raise IncompleteBuildError(msg)
        self._reported.add(partition)
        self._is_open = False

    @property
    def partitions_seen(self) -> int:
        """The least possible number of partitions: one more than the greatest index reported."""
        return max(self._reported, default=-1) + 1

    def merge(self, other: KeyBuilder) -> None:
        """Takes the partitions of a closed builder of the same types and limits."""
        if (self.types, self.limits) != (other.types, other.limits):
            msg = (
                f"Cannot merge keys of {_names(other.types)} under {other.limits}: "
                f"expected {_names(self.types)} under {self.limits}"
            )
            raise ValueError(msg)
        if other._is_open or self._reported & other._reported:
            found = "one that is not closed" if other._is_open else f"{sorted(self._reported & other._reported)} again"
            msg = f"Cannot merge partitions of keys: found {found}"
            raise IncompleteBuildError(msg)
        self._reported |= other._reported
        self.rows += other.rows
        self.null_rows += other.null_rows
        self.nulls = [mine + theirs for mine, theirs in zip(self.nulls, other.nulls, strict=True)]
        self.nans = [mine + theirs for mine, theirs in zip(self.nans, other.nans, strict=True)]
        for mine, theirs in zip(self._sets(), other._sets(), strict=True):
            mine.merge(theirs)

    def _sets(self) -> list[KeySet]:
        return self._columns if self._tuples is self._columns[0] else [*self._columns, self._tuples]

    def to_bytes(self) -> bytes:
        """The closed builder as one buffer for `from_bytes`."""
        if self._is_open:
            msg = "Cannot send keys of a partition that is not closed: more of them may come"
            raise IncompleteBuildError(msg)
        header: dict[str, Any] = {
            "types": [str(type_) for type_ in self.types],
            "limits": asdict(self.limits),
            "counts": [self.rows, self.null_rows, self.nulls, self.nans],
            "reported": sorted(self._reported),
            "sets": [],
        }
        arrays: dict[str, npt.NDArray[Any]] = {}
        for at, keys in enumerate(self._sets()):
            described, own = keys.packed()
            header["sets"].append(described)
            arrays |= {f"{at}.{name}": array for name, array in own.items()}
        return pack(header, arrays)

    @staticmethod
    def from_bytes(data: bytes) -> KeyBuilder:
        """The builder that `to_bytes` wrote; `ValueError` for anything else."""
        header, arrays = unpack(data)
        builder = KeyBuilder([ValueType.parse(name) for name in header["types"]], KeyLimits(**header["limits"]))
        builder.rows, builder.null_rows, builder.nulls, builder.nans = header["counts"]
        builder._reported = set(header["reported"])
        for at, (keys, described) in enumerate(zip(builder._sets(), header["sets"], strict=True)):
            prefix = f"{at}."
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            keys.unpack(described, own)
        return builder

    def finish(
        self,
        partitions: int,
        *,
        source: str,
        subject: str = "",
        versions: Mapping[str, int] = MappingProxyType({}),
        reasons: Sequence[Reason] = (),
    ) -> KeySummary:
        """The summary of all `partitions`; `IncompleteBuildError` unless each of them was reported once.

        `source` says in a few words where the keys come from, `subject` what they filter; `versions` and
        `reasons` are noted beside what the builder found itself.
        """
        if self._is_open or self._reported != set(range(partitions)):
            found = "rows of one that is not closed" if self._is_open else f"{len(self._reported)}"
            msg = f"Cannot finish the keys of {source}: expected {partitions} partitions, found {found}"
            raise IncompleteBuildError(msg)
        bloom = self._tuples.filter()
        if bloom is not None and bloom.is_useless:
            bloom = None
        is_exact = self._tuples.is_exact
        rows = self._tuples.rows() if is_exact else ()
        return KeySummary(
            columns=tuple(self._column(at) for at in range(len(self.types))),
            rows=self.rows,
            null_rows=self.null_rows,
            distinct=len(rows[0]) if is_exact else None,
            key_rows=KeyRows(rows) if is_exact and len(self.types) > 1 else None,
            bloom=bloom,
            hashed_as=() if bloom is None else self.types,
            source=source,
            partitions=partitions,
            versions=MappingProxyType(dict(versions)),
            reasons=(*reasons, *self._reasons(subject or source)),
        )

    def _column(self, at: int) -> KeyColumn:
        keys, type_ = self._columns[at], self.types[at]
        keys.settle()
        if not keys.is_exact:
            return KeyColumn(Domain(keys.span.range_set(), nan=self.nans[at] > 0), self.nulls[at], self.nans[at])
        (codes,) = keys.rows()
        nan = type_.is_float and len(codes) > 0 and int(codes[-1]) == NAN_CODE
        points = codes[:-1] if nan and isinstance(codes, np.ndarray) else codes
        ranges = RangeSet.of_codes(type_, points, is_sorted=True)
        return KeyColumn(Domain(ranges, nan=nan), self.nulls[at], self.nans[at])

    def _reasons(self, subject: str) -> Iterable[Reason]:
        if self._tuples.is_exact:
            return
        limits = f"more than {self.limits.keys:,} keys or {self.limits.nbytes:,} bytes in {self.rows:,} rows"
        yield Reason(ReasonCode.KEYS_OVER_LIMIT, subject, limits)
        bloom = self._tuples.filter()
        if bloom is not None and bloom.is_useless:
            passed = f"it would pass {bloom.expected_fpp:.0%} of what does not match"
            yield Reason(ReasonCode.BLOOM_TOO_FULL, subject, passed)


def _with_nan(column: CodedColumn) -> Codes:
    if not isinstance(column.codes, np.ndarray) or not column.nan.any():
        return column.codes
    return np.where(column.nan, np.int64(NAN_CODE), column.codes)


def _names(types: Iterable[ValueType]) -> str:
    return ", ".join(map(str, types))
