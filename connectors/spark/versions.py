"""Checks that Spark is installed, and that pruning knows the version that a session runs.

Importing this module loads no engine, so a machine without one gets the line that says what to install.
"""

from __future__ import annotations

import logging
import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from connectors.spark.session_state import state_of
from pruning.errors import EnvironmentProblem
from pruning.reasons import Reason, ReasonCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Major and minor versions that the tests cover; vendors append suffixes to these numbers.
KNOWN = ((4, 2),)
INSTALL = "pip install 'scanprune[spark]'"
# pyspark's client for Spark Connect comes without py4j, which classic sessions need.
_SPARK = ("pyspark", "py4j")
_NUMBERS = re.compile(r"(\d+)\.(\d+)(?!\d)")

logger = logging.getLogger("scanprune")


def require_spark(asked: str) -> None:
    """Raises `EnvironmentProblem` if Spark is not installed; `asked` names the action that needs it."""
    missing = [name for name in _SPARK if not is_installed(name)]
    if missing:
        found = f"found no package {' and no '.join(missing)}"
        msg = f"Cannot {asked} without Spark: {found}; {INSTALL}, or use the Python that has your cluster's Spark"
        raise EnvironmentProblem(msg)


def is_installed(name: str) -> bool:
    """True where a package can be imported."""
    return name in sys.modules or find_spec(name) is not None


def unknown_version(version: str) -> Reason | None:
    """The reason not to prune on a version of Spark; None where pruning knows it.

    >>> print(unknown_version("4.2.1-amzn-0"))
    None
    >>> unknown_version("4.3.0").subject
    'Spark 4.3.0'
    """
    numbers = _NUMBERS.match(version)
    if numbers and tuple(map(int, numbers.groups())) in KNOWN:
        return None
    known = ", ".join(f"{major}.{minor}" for major, minor in KNOWN)
    return Reason(ReasonCode.UNKNOWN_VERSION, f"Spark {version}", f"known: {known}; {INSTALL} brings it")


@dataclass(slots=True)
class _Verdict:
    """The check of one session: the reason not to prune in it, and True once the user was warned."""

    is_asked: bool = False
    reason: Reason | None = None
    is_told: bool = False


def version_refusal(spark: SparkSession) -> Reason | None:
    """The reason not to use the internals of a session's Spark; the version is read once for each session.

    None for Spark Connect, where pruning uses only public APIs.
    """
    from connectors.spark.jvm import has_jvm  # noqa: PLC0415 - loads Spark

    verdict = state_of(spark).slot(_Verdict)
    if not verdict.is_asked:
        verdict.reason = unknown_version(spark.version) if has_jvm(spark) else None
        verdict.is_asked = True
    return verdict.reason


@dataclass(slots=True)
class _Remote:
    """True once the user of a session of Spark Connect was warned."""

    is_told: bool = False


def remote_refusal(spark: SparkSession, *, warns: bool) -> Reason | None:
    """The reason not to prune queries of a session of Spark Connect; with `warns`, one warning in a session."""
    from connectors.spark.jvm import has_jvm  # noqa: PLC0415 - loads Spark

    if has_jvm(spark):
        return None
    reason, told = Reason(ReasonCode.NO_JVM, "the query"), state_of(spark).slot(_Remote)
    if warns and not told.is_told:
        told.is_told = True
        logger.warning("Reading without pruning: %s; try: %s", reason, reason.remedy)
    return reason


def warn_of_version(spark: SparkSession) -> None:
    """Warns once in a session that nothing is pruned, since its version is unknown."""
    verdict = state_of(spark).slot(_Verdict)
    if verdict.reason is not None and not verdict.is_told:
        verdict.is_told = True
        logger.warning("Reading without pruning: %s; try: %s", verdict.reason, verdict.reason.remedy)
