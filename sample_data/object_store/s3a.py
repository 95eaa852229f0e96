"""Settings by which Spark reads the object store through Hadoop's S3A."""

from __future__ import annotations

from collections.abc import Mapping

from sample_data.object_store.store import Access

# The versions of Spark's own Hadoop. S3A needs only these modules of the AWS SDK, whose bundle has 600 MB.
_SDK = "software.amazon.awssdk"
_PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    *(f"{_SDK}:{name}:2.35.4" for name in ("s3", "s3-transfer-manager", "sts")),
)
_EXCLUDED = (f"{_SDK}:bundle", "org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime")


def s3a_conf(access: Access) -> Mapping[str, str]:
    """Settings of a session that reads `s3a://` paths, without read-ahead beyond the requested ranges."""
    confs = {
        "endpoint": access.endpoint,
        "endpoint.region": access.region,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": access.access_key,
        "secret.key": access.secret_key,
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        # The default stream reads ahead and caches, many times the bytes that a query needs.
        "input.stream.type": "classic",
        # The rest of a range is drained when a stream is closed early; with an aborted connection the store could not
        # count the bytes of the range.
        "input.async.drain.threshold": "1G",
    }
    return {
        "spark.jars.packages": ",".join(_PACKAGES),
        "spark.jars.excludes": ",".join(_EXCLUDED),
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in confs.items()},
    }
