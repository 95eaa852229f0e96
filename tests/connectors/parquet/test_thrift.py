from __future__ import annotations

import pytest

from connectors.parquet.thrift import STRUCT, field_offsets, next_field, read_struct, skip, zigzag
from tests.connectors.hand_made import BINARY, BYTE, FALSE, I16, I32, I64, LIST, TRUE, Struct, encoded_struct
from tests.connectors.hand_made import STRUCT as OF_STRUCTS

EVERYTHING: Struct = {
    1: (TRUE, True),
    2: (FALSE, False),
    3: (BYTE, 200),
    4: (I16, -1),
    5: (I32, 2**31 - 1),
    6: (I64, -(2**63)),
    8: (BINARY, b"a" * 300),
    9: (BINARY, b""),
    10: (LIST, (I64, [0, 1, -1, 2**40])),
    11: (LIST, (BINARY, [b"x"] * 20)),
    12: (LIST, (TRUE, [True, False])),
    13: (OF_STRUCTS, {1: (OF_STRUCTS, {}), 70: (I32, 7)}),
    14: (LIST, (OF_STRUCTS, [{1: (I32, 1)}, {}])),
    100: (I32, 100),
}


def plain(kind: int, value: object) -> object:
    match kind, value:
        case 12, dict():
            return {id_: plain(*each) for id_, each in value.items()}
        case 9, (element, list(items)):
            return [plain(element, each) for each in items]
        case _:
            return value


def test_structs_round_trip():
    data = encoded_struct(EVERYTHING)
    assert (plain(12, EVERYTHING), len(data)) == read_struct(data, 0)


def test_skip_ends_where_read_ends():
    data = encoded_struct(EVERYTHING)
    assert len(data) == skip(data, 0, STRUCT)
    offsets, end = field_offsets(data, 0)
    assert (sorted(EVERYTHING), len(data)) == (list(offsets), end)
    assert [2**31 - 1, 100] == [zigzag(data, offsets[id_]) for id_ in (5, 100)]


def test_fields_are_iterated():
    data = encoded_struct({2: (I32, 5), 40: (I32, 6)})
    first = next_field(data, 0, 0)
    assert (2, I32) == first[:2]
    second = next_field(data, skip(data, first[2], I32), 2)
    assert (40, I32) == second[:2]
    assert 0 == next_field(data, skip(data, second[2], I32), 40)[1]


DAMAGED = {
    "cut short": encoded_struct(EVERYTHING)[:-9],
    "bytes beyond the end": bytes([0x18, 0xFF, 0x7F]),
    "no such kind": bytes([0x1E, 0, 0]),
    "map": bytes([0x1B, 0, 0]),
    "list of endless length": bytes([0x19, 0xFC]) + b"\xff" * 9 + b"\x01",
    "truths of endless length": bytes([0x19, 0xF1]) + b"\xff" * 9 + b"\x01",
    "structs within structs": b"\x1c" * 5000,
    "nothing": b"",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_data_is_an_error_without_a_loop(data):
    with pytest.raises((IndexError, ValueError, RecursionError)):
        read_struct(data, 0)
    with pytest.raises((IndexError, ValueError, RecursionError)):
        field_offsets(data + b"\x18", 0)
