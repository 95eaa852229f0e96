"""Keys of builds: equal only for builds that give the same rows and keys.

A key has three parts: the confs of the session, the operators of the build's plan (`PlanFingerprint.java`), and for
each leaf of the plan a fingerprint by its connector. Operators are projections, filters, joins and aggregates; a build
with any other has no key. Spark's own canonical form is no key: it is the same for 0.0 and -0.0, and for sums of
doubles in any order.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.registry import fingerprints
from connectors.spark.fingerprints import FINGERPRINT_TEXT, refused
from connectors.spark.jvm import JavaFile, instance, jvm_session, one_line
from pruning.reasons import Reason

logger = logging.getLogger("scanprune")

_BUILDS = JavaFile("connectors.builds", "BuildFingerprints", others=("PlanFingerprint", FINGERPRINT_TEXT))
_TROUBLE = (Py4JError, PySparkException, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class BuildKey:
    """The key of a build: fingerprints of the session, of the operators, and of the leaves in the plan's order."""

    session: str
    operators: str
    leaves: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """The characters of all fingerprints."""
        return len(self.session) + len(self.operators) + sum(map(len, self.leaves))


@dataclass(frozen=True, slots=True)
class _Operators:
    """The operators of one build, and the file formats of its leaves."""

    fingerprint: str
    formats: tuple[str, ...]


@dataclass(slots=True)
class BuildKeys:
    """The keys of builds, each a plan of the JVM and the expression of its keys, at any moment.

    A build whose key is the same before and after it ran has read what the key names.
    """

    spark: SparkSession
    builds: Sequence[tuple[Any, Any]]
    _java: Any = None
    _operators: Sequence[_Operators | str] = ()
    _leaves: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def now(self) -> list[BuildKey | str]:
        """The key of each build as of this moment, or the reason why it has none."""
        try:
            return self._now()
        except _TROUBLE as error:
            logger.debug("The keys of builds failed", exc_info=True)
            return [one_line(error)] * len(self.builds)

    def _now(self) -> list[BuildKey | str]:
        if self._java is None:
            self._java = instance(self.spark, _BUILDS, jvm_session(self.spark))
        # Before anything else, so that the end of a build shows whether confs were set since its leaves were looked at.
        session = str(self._java.session())
        self._operators = self._operators or [_operators(self._java, *each) for each in self.builds]
        formats = [each for build in self._operators if isinstance(build, _Operators) for each in build.formats]
        leaves = iter(fingerprints(self.spark, formats, self._leaves_of))
        return [_key(session, build, leaves) for build in self._operators]

    def _leaves_of(self, formats: tuple[str, ...]) -> Any:
        if formats not in self._leaves:
            self._leaves[formats] = self._java.leaves(" ".join(formats))
        return self._leaves[formats]


def _operators(java: Any, plan: Any, key: Any) -> _Operators | str:
    try:
        text = str(java.operators(plan, key))
    except _TROUBLE as error:
        logger.debug("The fingerprint of a plan failed", exc_info=True)
        return one_line(error)
    if (why := refused(text)) is not None:
        return why
    fingerprint, *formats = text.split(" ")
    return _Operators(fingerprint, tuple(formats))


def _key(session: str, build: _Operators | str, leaves: Iterator[str | Reason]) -> BuildKey | str:
    if isinstance(build, str):
        return build
    own = list(islice(leaves, len(build.formats)))
    why = next((each.detail for each in own if isinstance(each, Reason)), None)
    return BuildKey(session, build.fingerprint, tuple(map(str, own))) if why is None else why
