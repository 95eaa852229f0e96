from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from connectors.keys.worker import KeyColumns, merge_task, messages, pieces
from pruning.keys.builder import IncompleteBuildError, KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.values.types import ValueType

LIMITS = KeyLimits(1000, 1 << 20, 0.01)
BIGINT = ValueType("bigint")
KEY = KeyColumns("k", (0,), (BIGINT,))


def test_pieces_of_messages_arrive_in_any_order():
    sent = [b"", b"0123456789", bytes(range(95))]
    batches = [batch for partition, message in enumerate(sent) for batch in pieces(partition, message, 10)]
    order = np.random.default_rng(0).permutation(len(batches))
    assert sorted(enumerate(sent)) == sorted(messages(batches[at] for at in order))
    together = pa.Table.from_batches([batches[at] for at in order]).combine_chunks().to_batches()
    assert sorted(enumerate(sent)) == sorted(messages(together))


def test_missing_or_repeated_piece_is_an_error():
    batches = list(pieces(0, bytes(25), 10))
    with pytest.raises(IncompleteBuildError, match="missing"):
        list(messages(batches[:-1]))
    with pytest.raises(IncompleteBuildError, match="came twice"):
        list(messages([batches[0], batches[0]]))


def test_merge_of_nothing_reports():
    ((_, message),) = messages(merge_task([KEY], LIMITS)(iter(())))
    assert KeyBuilder.from_bytes(message).finish(0, source="test").is_none


def test_partition_sent_twice_is_an_error():
    builder = KeyBuilder([BIGINT], LIMITS)
    builder.close(3)
    batches = [*pieces(3, builder.to_bytes(), 1000), *pieces(3, builder.to_bytes(), 1000)]
    with pytest.raises(IncompleteBuildError, match="again"):
        list(merge_task([KEY], LIMITS)(iter(batches)))
