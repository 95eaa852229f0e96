"""The settings by which Spark's own file systems read buckets, as pyarrow is given them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from connectors.java_names import java_names
from connectors.s3_access import KEY_STORE_SETTINGS, PREFIX, S3Access, bucket_of, s3_access
from pruning.reasons import Reason, ReasonCode

_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def s3_buckets(spark: SparkSession, uris: Iterable[str]) -> dict[str, S3Access] | Reason:
    """How to reach the bucket of each file that lies in one, by its name; a `Reason` where that is not understood."""
    schemes = {bucket: uri.partition("://")[0] for uri in uris if (bucket := bucket_of(uri))}
    found: dict[str, S3Access] = {}
    for bucket, scheme in schemes.items():
        access = _access(spark, bucket, f"{scheme}://{bucket}")
        if isinstance(access, Reason):
            return access
        found[bucket] = access
    return found


def _access(spark: SparkSession, bucket: str, root: str) -> S3Access | Reason:
    try:
        system = _system(spark, root)
        if (name := str(system.getClass().getName())) != _S3A:
            return Reason(ReasonCode.NOT_READ_BY_ARROW, root, f"{name} reads it")
        # Those that it was made with: a session may have changed them since, and Hadoop keeps its file systems.
        return s3_access(bucket, _settings(spark, system.getConf()))
    except Py4JError as error:
        # Its message may hold what the settings do.
        kind = error.java_exception.getClass().getName() if isinstance(error, Py4JJavaError) else type(error).__name__
        return Reason(ReasonCode.NOT_READ_BY_ARROW, root, f"{kind} at its settings")


def _system(spark: SparkSession, root: str) -> Any:
    jvm = java_names(spark)
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(f"{root}/"))
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001


def _settings(spark: SparkSession, conf: Any) -> dict[str, str]:
    """All of S3A's, and of others those that concern it, as one text: each one would be a call."""
    mapper = java_names(spark).com.fasterxml.jackson.databind.ObjectMapper()
    found = json.loads(mapper.writeValueAsString(conf.getPropsWithPrefix(PREFIX)))
    others = {name: conf.get(name) for name in KEY_STORE_SETTINGS}
    return {
        **{f"{PREFIX}{name}": value for name, value in found.items() if value is not None},
        **{name: value for name, value in others.items() if value is not None},
    }
