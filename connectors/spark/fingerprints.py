"""Fingerprints of leaves of plans: equal only for leaves that read the same rows and columns.

A connector names the snapshot of a leaf, and everything else that decides on its rows is added here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from connectors.spark.jvm import JavaFile, instance, jvm_session
from pruning.reasons import Reason, ReasonCode

FINGERPRINT_TEXT = "connectors.spark.FingerprintText"
_LEAVES = JavaFile("connectors.spark", "LeafFingerprints", others=("FingerprintText",))
_REFUSED = "!"


def refused(text: str) -> str | None:
    """The reason in an answer of the JVM that begins with an exclamation mark; None for any other answer."""
    return text.removeprefix(_REFUSED) if text.startswith(_REFUSED) else None


def no_fingerprint(why: str) -> Reason:
    """The reason why a build over a leaf is not kept."""
    return Reason(ReasonCode.NOT_CACHED, "a scan", why)


def leaf_fingerprints(
    spark: SparkSession, leaves: Sequence[Any], snapshots: Sequence[Sequence[object] | Reason] | JavaObject
) -> list[str | Reason]:
    """The fingerprints of leaves that read files, from the snapshot of each, in three calls to the JVM.

    A snapshot is a list of numbers, texts and lists of them: everything that tells which rows the files hold, such as
    paths, sizes and times, or the table and its version. A list of the JVM has such lists, or a text of an exclamation
    mark and the reason why there is no snapshot.
    """
    if isinstance(snapshots, JavaObject):
        given: Any = snapshots
    else:
        given = [_REFUSED + each.detail if isinstance(each, Reason) else list(each) for each in snapshots]
    lines = str(instance(spark, _LEAVES, jvm_session(spark), leaves, given).text()).split("\n")
    return [line if (why := refused(line)) is None else no_fingerprint(why) for line in lines]
