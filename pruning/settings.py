"""A setting: a field of a frozen dataclass, with the values that it may have, set as a value or as text."""

from __future__ import annotations

import re
from dataclasses import Field, field, fields
from typing import TYPE_CHECKING, Any

from pruning.errors import InvalidOptionError

if TYPE_CHECKING:

    class Size:
        """The type of a field in bytes, which is set as a number or as text with a unit."""

        def __get__(self, instance: object, owner: object) -> int: ...
        def __set__(self, instance: object, value: int | str) -> None: ...

    class Duration:
        """The type of a field in seconds, which is set as a number or as text with a unit."""

        def __get__(self, instance: object, owner: object) -> float: ...
        def __set__(self, instance: object, value: float | str) -> None: ...

else:
    Size, Duration = int, float


def number(default: float, least: float, most: float, **metadata: object) -> Any:
    """A field that holds a number from `least` to `most`, an integer if `default` is one."""
    return field(default=default, metadata={"least": least, "most": most, **metadata})


# Settings whose text may have a unit.
_OF_SIZES, _OF_DURATIONS = "_bytes", "_seconds"
_SIZE = re.compile(r"(\d+)\s*(?:([kmgtp])(?:i?b)?|b)?", re.ASCII)
_DURATION = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)", re.ASCII)
# The units of durations in Spark's confs, in seconds.
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
# Larger than any number of rows, bytes or files.
UNBOUNDED = 1 << 62


def limit(  # noqa: PLR0913, PLR0917 - the columns of the table
    default: float, unit: str, why: str, off: float, least: float = 0, most: float = UNBOUNDED
) -> Any:
    """A field that holds a number of the table of limits; `off` is the value that turns its rule off."""
    return number(default, least, most, unit=unit, why=why, off=off)


def word(default: str, *names: str) -> Any:
    """A field that holds one of some words in capitals."""
    return field(default=default, metadata={"names": names})


def table(default: object, expected: str, **metadata: object) -> Any:
    """A field that holds an instance of the class of `default`, whose `parse()` reads one from text, if it has one."""
    return field(default=default, metadata={"expected": expected, **metadata})


def check_all(settings: Any) -> None:
    """Raises `InvalidOptionError` for the first field with a value that it cannot have."""
    for each in fields(settings):
        check(each, getattr(settings, each.name), each.name)


def set_texts(settings: Any) -> None:
    """Sets sizes and durations of a frozen dataclass that were given as text to their numbers.

    `InvalidOptionError` for a text that is none.
    """
    for each in fields(settings):
        value = getattr(settings, each.name)
        if isinstance(value, str) and each.name.endswith((_OF_SIZES, _OF_DURATIONS)):
            object.__setattr__(settings, each.name, parsed(each, value, each.name))


def check(setting: Field[Any], value: Any, name: str) -> None:
    """Raises `InvalidOptionError` for a value that a setting cannot have; `name` is the caller's word for it."""
    match setting.default:
        case bool():
            is_valid = isinstance(value, bool)
        case str():
            is_valid = value in setting.metadata["names"]
        case int() | float():
            numbers = (int, float) if isinstance(setting.default, float) else int
            is_valid = isinstance(value, numbers) and not isinstance(value, bool)
            is_valid = is_valid and setting.metadata["least"] <= value <= setting.metadata["most"]
        case _:
            is_valid = isinstance(value, type(setting.default))
    if not is_valid:
        raise _refused(setting, value, name)


def parsed(setting: Field[Any], text: str, name: str) -> Any:
    """The value that a text gives a setting; `InvalidOptionError` for another text, with the caller's `name`."""
    try:
        value = _parsed(setting, text)
    except (KeyError, ValueError) as error:
        raise _refused(setting, text, name) from error
    check(setting, value, name)
    return value


def _parsed(setting: Field[Any], text: str) -> object:
    default: Any = setting.default
    match default:
        case bool():
            return {"true": True, "false": False}[text.strip().lower()]
        case str():
            return text.strip().upper()
        case int() if setting.name.endswith(_OF_SIZES):
            return parsed_size(text)
        case int():
            return int(text)
        case float() if setting.name.endswith(_OF_DURATIONS):
            return parsed_duration(text)
        case float():
            return float(text)
        case _:
            return default.parse(text)


def parsed_size(text: str) -> int:
    """The bytes of a number with or without a unit, as Spark reads them; `ValueError` for another text.

    >>> parsed_size("512"), parsed_size("8m"), parsed_size("8 MiB"), parsed_size("1GB")
    (512, 8388608, 8388608, 1073741824)
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(text)
    return int(match[1]) << 10 * "bkmgtp".index(match[2] or "b")


def parsed_duration(text: str) -> float:
    """The seconds of a number with or without a unit, as Spark reads them; `ValueError` for another text.

    >>> parsed_duration("0.5"), parsed_duration("500ms"), parsed_duration("2 min"), parsed_duration("1H")
    (0.5, 0.5, 120.0, 3600.0)
    """
    match = _DURATION.fullmatch(text.strip().lower())
    return float(text) if match is None else float(match[1]) * _SECONDS[match[2]]


def _refused(setting: Field[Any], value: object, name: str) -> InvalidOptionError:
    match setting.default:
        case bool():
            expected = "true or false"
        case str():
            expected = f"one of {', '.join(setting.metadata['names'])}"
        case int() | float():
            expected = f"a number from {setting.metadata['least']} to {setting.metadata['most']}"
            if isinstance(value, str) and setting.name.endswith(_OF_SIZES):
                expected += " or a size such as 8MiB"
            elif isinstance(value, str) and setting.name.endswith(_OF_DURATIONS):
                expected += " or a duration such as 2min"
        case _:
            expected = setting.metadata["expected"]
    return InvalidOptionError(f"Cannot set {name!r} to {value!r}: expected {expected}")
