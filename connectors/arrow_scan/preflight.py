"""Trials on the driver before workers scan by pyarrow: a request to each store, and a sample of rows.

Certificates and host names may differ between pyarrow and Java in spite of equal settings, and a running query cannot
fall back to Spark's reader. A store has some seconds to answer; if it does not, it is not tried again for some minutes.

The sample measures one row group: the share of its rows that pass, and the time of testing a value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from connectors.arrow_scan.files import FilePart, OtherFileError, open_file
from connectors.arrow_scan.reader import Counts, KeyTest, ReadColumn, RowGroup
from connectors.arrow_scan.row_filter import ArrowRowFilter
from connectors.arrow_scan.s3 import S3Access, bucket_of, s3_buckets
from connectors.jobs.runner import DeadlineError, within
from connectors.spark.session_state import Refusals, state_of
from pruning.limits import LIMITS, Limits
from pruning.reasons import Reason, ReasonCode
from pruning.scan.reader_cost import KeySample, Sample
from pruning.values.ranges import BoolArray

T = TypeVar("T")

_FAILURES = (OSError, ImportError, ValueError, pa.ArrowException)


@dataclass(frozen=True, slots=True, eq=False)
class Preflight:
    """The access to the buckets of the files, and a sample of rows.

    The sample is None if it was not requested, or if it would be a large part of the scan.
    """

    stores: Mapping[str, S3Access]
    sample: Sample | None


@dataclass(frozen=True, slots=True)
class _Files:
    """Access to files with a timeout: `stores` are the buckets of all files."""

    stores: Mapping[str, S3Access]
    refusals: Refusals
    seconds: float

    def refused(self) -> Reason | None:
        found = (self.refusals.of(each) for each in self.stores.values())
        return next((each for each in found if each is not None), None)

    def asked(self, part: FilePart, action: Callable[[], T]) -> T | Reason:
        """The result of `action` on a file; a `Reason` if its store fails or does not answer in time."""
        bucket = bucket_of(part.path)
        if bucket is None:
            return action()
        try:
            return within(self.seconds, action, f"a look at s3a://{bucket}")
        except OtherFileError as error:
            return _refusal(bucket, _told(error))
        except DeadlineError:
            reason = _refusal(bucket, f"no answer in {self.seconds:g} seconds")
        except _FAILURES as error:
            reason = _refusal(bucket, _told(error))
        return self.refusals.add(self.stores[bucket], reason)


def check_stores(  # noqa: PLR0913 - what is tried, and how
    spark: SparkSession,
    tasks: Sequence[Sequence[FilePart]],
    columns: Sequence[ReadColumn],
    tests: Sequence[KeyTest],
    *,
    is_sampled: bool,
    limits: Limits = LIMITS,
) -> Preflight | Reason:
    """The outcome of the trials; a `Reason` if a setting of a store is not supported, or the store fails."""
    some = {bucket: part for task in tasks for part in task if (bucket := bucket_of(part.path))}
    stores = s3_buckets(spark, [part.path for part in some.values()])
    if isinstance(stores, Reason):
        return stores
    files, hasty = _Files(stores, state_of(spark).refusals, limits.store_trial_seconds), _hasty(limits)
    if (refusal := files.refused()) is not None:
        return refusal
    for part in some.values():
        if (unopened := files.asked(part, partial(_open, part, stores, hasty))) is not None:
            return unopened
    middle = _middle(tasks, limits.sampled_row_groups) if is_sampled else None
    if middle is None:
        return Preflight(stores, None)
    sample = files.asked(middle, partial(sample_row_group, middle, columns, tests, stores, hasty))
    return sample if isinstance(sample, Reason) else Preflight(stores, sample)


def _hasty(limits: Limits) -> Limits:
    """The limits for a trial, with short timeouts, so that an abandoned request ends soon."""
    return replace(
        limits,
        store_attempts=min(limits.store_attempts, 2),
        store_connect_seconds=min(limits.store_connect_seconds, 0.4 * limits.store_trial_seconds),
        store_answer_seconds=min(limits.store_answer_seconds, 0.8 * limits.store_trial_seconds),
    )


def _open(part: FilePart, stores: Mapping[str, S3Access], limits: Limits) -> None:
    with open_file(part, stores, limits):
        pass


def _middle(tasks: Sequence[Sequence[FilePart]], least: int) -> FilePart | None:
    """The row group in the middle of all; None if there are fewer than `least`."""
    parts = [replace(part, row_groups=(at,)) for task in tasks for part in task for at in part.row_groups]
    return parts[len(parts) // 2] if len(parts) >= least else None


def _refusal(bucket: str, detail: str) -> Reason:
    return Reason(ReasonCode.NOT_READ_BY_ARROW, f"s3a://{bucket}", detail)


def _told(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


_NANOSECONDS = 1e9


def sample_row_group(
    part: FilePart,
    columns: Sequence[ReadColumn],
    tests: Sequence[KeyTest],
    stores: Mapping[str, S3Access],
    limits: Limits = LIMITS,
) -> Sample:
    """A sample of the first rows of the first row group of a part.

    A key is not tested if the keys before it leave no row. If no row passes, a fraction of a row counts as passing,
    since one may pass among the rows outside of the sample.
    """
    keys: list[KeySample | None] = []
    passing: BoolArray | None = None
    with open_file(part, stores, limits) as file:
        group = RowGroup(file, part.row_groups[0], part, columns, Counts(), limits)
        for each in tests:
            if passing is not None and not passing.any():
                keys.append(None)
                continue
            found, nanoseconds = _tested(each, group)
            keys.append(KeySample(_share(found), nanoseconds))
            passing = found if passing is None else passing[: len(found)] & found[: len(passing)]
    return Sample(1.0 if passing is None else _share(passing), tuple(keys))


def _share(found: BoolArray) -> float:
    return max(float(np.count_nonzero(found)), 0.5) / max(1, len(found))


def _tested(test: KeyTest, group: RowGroup) -> tuple[BoolArray, float | None]:
    """An array, True where each of the first rows passes, and the nanoseconds for one row.

    The time is CPU time of this thread, without waits for a disk, a store or other threads.
    """
    limits = group.limits
    row_filter = ArrowRowFilter.of(test.type, test.rows, limits)
    if group.part.leaves[test.column] is None:
        return np.full(group.rows, row_filter.matching(next(group.values(test.column)))[0]), None
    pieces = group.values(test.column)
    # The first piece is not timed, since it includes one-time initialisation.
    first = row_filter.matching(next(pieces))
    began = time.thread_time()
    rest = list(_for_a_while(pieces, began, limits.sample_seconds))
    rows = sum(map(len, rest))
    if not rows:
        return first, None
    found = np.concatenate([first, row_filter.matching(pa.concat_arrays(rest))])
    spent = time.thread_time() - began
    return found, spent / rows * _NANOSECONDS if rows >= limits.sample_rows else None


def _for_a_while(pieces: Iterator[pa.Array], began: float, seconds: float) -> Iterator[pa.Array]:
    for each in pieces:
        yield each
        if time.thread_time() - began > seconds:
            return
