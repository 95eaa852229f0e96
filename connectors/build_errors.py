"""What went wrong in a build, in one line and without any value of its data."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pruning.errors import PruningError

_PYTHON_ERROR = re.compile(
    r"^(?:[a-zA-Z_][\w]*\.)*([A-Z]\w*(?:Error|Exception|Interrupt|Exit))\b(?::\s*(.*))?$", re.MULTILINE
)
_MISSING_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_MOST_CAUSES = 20


def one_line(error: BaseException) -> str:
    """The kind of error. Messages stay out of it, since Spark and Python quote the values they stumble on.

    >>> one_line(ZeroDivisionError("division of 'secret' by zero"))
    'ZeroDivisionError'
    """
    if isinstance(error, PruningError | MemoryError):
        return str(error) or type(error).__name__
    text = _full_text(error)
    worker = _python_error(text) if "Traceback (most recent call last)" in text else ""
    if worker:
        return worker
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return condition or _java_class(error) or type(error).__name__


def _python_error(text: str) -> str:
    """The error of a Python worker; the last in its traceback is the one that was raised."""
    found = _PYTHON_ERROR.findall(text)
    if not found:
        return ""
    name, message = found[-1]
    missing = _MISSING_MODULE.search(message)
    if missing:
        remedy = "install this package where the executors run, or ship it with spark.addArtifacts"
        return f"the Python workers cannot import {missing[1]!r}: {remedy}"
    return f"{name} in a Python worker"


def _full_text(error: BaseException) -> str:
    java = _java_root(error)
    return f"{error}\n{java.toString()}" if java is not None else str(error)


def _java_class(error: BaseException) -> str:
    java = _java_root(error)
    return str(java.getClass().getSimpleName()) if java is not None else ""


def _java_root(error: BaseException) -> Any:
    if not isinstance(error, Py4JJavaError):
        return None
    java: Any = error.java_exception
    for _ in range(_MOST_CAUSES):
        cause = java.getCause()
        if cause is None:
            break
        java = cause
    return java
