"""Keys on the driver: Python sequences, numpy, pandas and Arrow data as a `KeySummary`.

NULL is None, Arrow's null, numpy's NaT and masked values, and pandas' missing values. NaN is missing too, since pandas
turns an integer column with gaps into floats. Only if the probe column is a float or double is NaN a value that can
match.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.arrow_values import coded, value_type_of
from connectors.keys.python_values import (
    Family,
    arrow_type,
    datetime64_array,
    families_of,
    fitted,
    kinds_of,
    python_array,
)
from pruning.errors import InvalidKeysError, UnsupportedTypeError
from pruning.keys.builder import KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.values.types import ValueType

_BLOCK = 1 << 20


def summary_of(data: Any, probe_types: Sequence[ValueType], options: PruningOptions, name: str) -> KeySummary:
    """The summary of keys for probe columns of these types; `name` describes the columns in messages.

    One probe column takes a sequence, range, set, generator, one-dimensional array, series or Arrow array;
    several take a sequence of tuples, a DataFrame, an Arrow table or a two-dimensional array, their columns in
    the order of the probe columns. A `KeySummary` is returned as it is.

    Values have the probe column's type if it holds each of them exactly, else a type that does: values that match no
    value of the column are dropped when keys and column are compared. `InvalidKeysError` for other shapes, for values
    that cannot be compared with the column, and for values of different kinds.
    """
    if isinstance(data, KeySummary):
        _check_count(len(data.types), len(probe_types), name)
        return data
    return summary_of_table(key_table(data, probe_types, name), options, name, source=type(data).__name__)


def key_table(data: Any, probe_types: Sequence[ValueType], name: str) -> pa.Table:
    """The keys as a table with a column for each probe column; `data` is as for `summary_of`, but no summary.

    A caller that needs the keys twice takes the table, since a generator can be read only once.
    """
    columns = _columns(data, probe_types, name)
    _check_count(len(columns), len(probe_types), name)
    arrays = [_typed(each, probe, name) for each, probe in zip(columns, probe_types, strict=True)]
    return pa.Table.from_arrays(arrays, names=[f"k{at}" for at in range(len(arrays))])


def summary_of_table(table: pa.Table, options: PruningOptions, name: str, *, source: str) -> KeySummary:
    """The summary of a table of `key_table`."""
    types = [value_type_of(column.type) for column in table.columns]
    return built(table, types, KeyLimits.of(options)).finish(1, source=source, subject=name)


def built(table: pa.Table, types: Sequence[ValueType], limits: KeyLimits) -> KeyBuilder:
    """A builder with all rows of a table as its only partition, closed."""
    builder = KeyBuilder(types, limits)
    for batch in table.to_batches(max_chunksize=_BLOCK):
        builder.add([coded(column, type_) for column, type_ in zip(batch.columns, types, strict=True)])
    builder.close(0)
    return builder


def _check_count(found: int, expected: int, name: str) -> None:
    if found != expected:
        msg = f"Cannot use keys of {name!r}: found {found} columns, expected {expected}"
        raise InvalidKeysError(msg)


def _columns(data: Any, probes: Sequence[ValueType], name: str) -> Sequence[Any]:
    """One array, or list of Python values, for each key column."""
    pandas = sys.modules.get("pandas")
    match data:
        case pa.Table() | pa.RecordBatch():
            return list(data.columns)
        case pa.Array() | pa.ChunkedArray():
            return [data]
        case np.ndarray():
            return _numpy_columns(data)
        case range() if _fits_int64(data):
            return [np.arange(data.start, data.stop, data.step, dtype=np.int64)]
        case _ if pandas and isinstance(data, pandas.DataFrame):
            return [data.iloc[:, at] for at in range(data.shape[1])]
        case _ if pandas and isinstance(data, pandas.Series | pandas.Index):
            return [data]
        case _ if hasattr(data, "columns") or isinstance(data, str | bytes | bytearray | Mapping):
            # Iterating over a frame of another library would give its column names.
            raise _unusable(name, _called(data), probes)
        case Iterable():
            return _python_columns(list(data), probes, name)
        case _:
            raise _unusable(name, _called(data), probes)


def _called(data: Any) -> str:
    return "None" if data is None else type(data).__name__


def _unusable(name: str, found: str, probes: Sequence[ValueType]) -> InvalidKeysError:
    one = "a DataFrame, a sequence of values, or numpy, pandas or Arrow data"
    expected = one if len(probes) == 1 else f"a DataFrame, tuples of {len(probes)} values, or a table"
    return InvalidKeysError(f"Cannot use keys of {name!r}: found {found}, expected {expected}")


def _fits_int64(numbers: range) -> bool:
    limit = 1 << 63
    return all(-limit <= end < limit for end in (numbers.start, numbers.stop, numbers.step))


def _numpy_columns(data: np.ndarray[Any, Any]) -> Sequence[Any]:
    if data.dtype.names:
        return [data[field] for field in data.dtype.names]
    return list(data.T) if data.ndim == 2 else [data]


def _python_columns(values: list[Any], probes: Sequence[ValueType], name: str) -> Sequence[Any]:
    """The columns as lists of Python values; a row of one column may also be a tuple, as from `DataFrame.collect()`."""
    is_row = any(issubclass(cls, tuple | list) for cls in set(map(type, values)))
    if not is_row and (len(probes) == 1 or not values):
        return [values] * len(probes)
    shapes = {len(value) if isinstance(value, tuple | list) else None for value in values}
    if shapes - {len(probes)}:
        found = sorted("a plain value" if each is None else f"a row of {each}" for each in shapes)
        raise _unusable(name, " and ".join(found), probes)
    return [[row[at] for row in values] for at in range(len(probes))]


def _typed(column: Any, probe: ValueType, name: str) -> pa.Array | pa.ChunkedArray:
    array = _arrow_array(column, probe, name)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(probe))
    try:
        found = value_type_of(array.type)
    except UnsupportedTypeError as error:
        msg = f"Cannot use keys of {name!r}: {error}"
        raise InvalidKeysError(msg) from error
    if families_of(found).isdisjoint(families_of(probe)):
        expected = f"expected {kinds_of(probe)}: convert the keys"
        msg = f"Cannot compare keys with {name!r} of type {probe}: found {found}; {expected}"
        raise InvalidKeysError(msg)
    if found.is_float and not probe.is_float:
        array = _without_nan(array)
    is_number = families_of(found) >= {Family.INTEGER} and not pa.types.is_decimal(array.type)
    return fitted(_flat(array), probe) if is_number else array


def _arrow_array(column: Any, probe: ValueType, name: str) -> pa.Array | pa.ChunkedArray:
    match column:
        case pa.Array() | pa.ChunkedArray():
            return column
        case list():
            return python_array(column, probe, name)
        case np.ndarray():
            return _from_numpy(column, probe, name)
        case _:
            return _from_pandas(column, probe, name)


def _from_numpy(values: np.ndarray[Any, Any], probe: ValueType, name: str) -> pa.Array:
    if values.ndim != 1:
        raise _unusable(name, f"an array of {values.ndim} dimensions", [probe])
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    match values.dtype.kind:
        case "M":
            return datetime64_array(values)
        case "f" if values.dtype.itemsize > np.dtype(np.float64).itemsize:
            return pa.array(values.astype(np.float64))
        case "b" | "i" | "u" | "f" | "U" | "S":
            return pa.array(
                np.ma.asarray(values) if isinstance(values, np.ma.MaskedArray) else np.ascontiguousarray(values)
            )
        case "O" | "T":
            return python_array(values.tolist(), probe, name)
        case _:
            raise _unusable(name, f"numpy values of type {values.dtype}", [probe])


def _from_pandas(series: Any, probe: ValueType, name: str) -> pa.Array | pa.ChunkedArray:
    if series.dtype == object:
        return python_array(series.tolist(), probe, name)
    try:
        # The probe column decides later if NaN counts as missing.
        return pa.array(series, from_pandas=getattr(series.dtype, "kind", "") != "f")
    except (pa.ArrowException, TypeError) as error:
        raise _unusable(name, f"pandas values of type {series.dtype}", [probe]) from error


def _without_nan(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    flat = _flat(array)
    return pc.if_else(pc.is_nan(flat), pa.scalar(None, flat.type), flat)


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    decoded = whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
    return decoded.cast(pa.float32()) if pa.types.is_float16(decoded.type) else decoded
