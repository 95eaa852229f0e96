"""Confs of a session, read by one call for any number of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from pyspark.sql import SparkSession

from connectors.spark.jvm import JavaFile, has_jvm, instance, jvm_session
from connectors.spark.session_state import state_of
from connectors.spark.versions import version_refusal

_CONFS = JavaFile("connectors.spark", "SessionConfs")


class _Java:
    """The object of `SessionConfs.java` for a session; None before the first conf is read."""

    confs: Any = None


@dataclass(frozen=True, slots=True)
class Confs:
    """The values of some confs of a session at one moment; a conf without a value is not set."""

    values: Mapping[str, str]

    @staticmethod
    def of(spark: SparkSession, names: Collection[str]) -> Confs:
        """The values of the confs `names`; of a remote session or an unknown version, by Spark's public API."""
        if not has_jvm(spark) or version_refusal(spark) is not None:
            found = {name: spark.conf.get(name, None) for name in names}
            return Confs({name: str(text) for name, text in found.items() if text is not None})
        texts = str(_java(spark).texts(" ".join(names))).split(" ")
        pairs = zip(names, texts, strict=True)
        return Confs({name: unquote_plus(text.removeprefix("=")) for name, text in pairs if text.startswith("=")})

    def is_on(self, name: str) -> bool:
        """False for a conf that is set to false; True for any other value, and for none."""
        return self.values.get(name, "true").lower() != "false"


def confs_beginning_with(spark: SparkSession, prefix: str) -> Mapping[str, str]:
    """The confs of a classic session, of a known version, whose names begin with a prefix."""
    words: Iterator[str] = map(unquote_plus, str(_java(spark).beginningWith(prefix)).split(" ")[1:])
    return dict(zip(words, words, strict=True))


def _java(spark: SparkSession) -> Any:
    slot = state_of(spark).slot(_Java)
    if slot.confs is None:
        slot.confs = instance(spark, _CONFS, jvm_session(spark))
    return slot.confs
