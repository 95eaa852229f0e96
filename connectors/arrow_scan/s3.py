"""Access of pyarrow to S3 buckets by the settings of Hadoop's S3A.

`s3_access()` translates settings, without any request. A setting that is not listed here may change the bytes that are
read, or the user who reads them, so it is a `Reason`; reasons quote no value but names of classes and algorithms.
`s3_buckets()` takes the settings from Spark's own file systems.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from connectors.spark.jvm import hadoop_conf, java_names
from pruning.reasons import Reason, ReasonCode

SCHEMES = frozenset({"s3a", "s3", "s3n"})
PREFIX = "fs.s3a."
_AWS = "s3.amazonaws.com"
_HADOOP = "org.apache.hadoop.fs.s3a."
_BY_KEYS = frozenset({f"{_HADOOP}SimpleAWSCredentialsProvider", f"{_HADOOP}TemporaryAWSCredentialsProvider"})
_TEMPORARY = f"{_HADOOP}TemporaryAWSCredentialsProvider"
_ANONYMOUS = f"{_HADOOP}AnonymousAWSCredentialsProvider"
# S3A's default list.
_DEFAULT_PROVIDERS = (
    _TEMPORARY,
    f"{_HADOOP}SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
    f"{_HADOOP}auth.IAMInstanceCredentialsProvider",
)
# Algorithms that the store decrypts itself for every permitted reader.
_STORE_DECRYPTS = frozenset({"", "AES256", "SSE-KMS", "DSSE-KMS"})
_ALGORITHMS = ("encryption.algorithm", "server-side-encryption-algorithm")
# Settings of key stores, which may hold keys instead of the settings.
_KEY_STORE, _CLEAR_TEXT = "hadoop.security.credential.provider.path", "hadoop.security.credential.clear-text-fallback"
KEY_STORE_SETTINGS = (_KEY_STORE, _CLEAR_TEXT)
# Names that an S3 client may not treat as a region.
_NO_REGIONS = frozenset({"auto", "ec2", "sdk"})

_READ = frozenset(
    {
        "endpoint",
        "endpoint.region",
        "path.style.access",
        "connection.ssl.enabled",
        "aws.credentials.provider",
        "access.key",
        "secret.key",
        "session.token",
        *_ALGORITHMS,
    }
)
# Settings of writing, listing, waiting, or of the JVM's reads: the bytes of a file are the same.
_HARMLESS = frozenset(
    {
        "impl",
        "impl.disable.cache",
        "acl.default",
        "attempts.maximum",
        "audit.enabled",
        "audit.referrer.enabled",
        "audit.reject.out.of.span.operations",
        "block.size",
        "buffer.dir",
        "checksum.generation",
        "checksum.validation",
        "classloader.isolation",
        "cross.region.access.enabled",
        "downgrade.syncable.exceptions",
        "encryption.context",
        "encryption.key",
        "etag.checksum.enabled",
        "executor.capacity",
        "experimental.aws.s3.throttling",
        "experimental.input.fadvise",
        "input.async.drain.threshold",
        "input.stream.type",
        "io.rate.limit",
        "list.version",
        "max.total.tasks",
        "multiobjectdelete.enable",
        "optimized.copy.from.local.enabled",
        "paging.maximum",
        "performance.flags",
        "readahead.range",
        "request.md5.header",
        "server-side-encryption.key",
        "ssl.channel.mode",
        "user.agent.prefix",
    }
)
_HARMLESS_UNDER = (
    "analytics.accelerator.",
    # Read by a provider of credentials that is refused.
    "assumed.role.",
    "bucket.",
    "bulk.delete.",
    "change.detection.",
    "committer.",
    "connection.",
    "create.",
    "directory.",
    "fast.",
    "multipart.",
    "prefetch.",
    "retry.",
    "select.",
    "socket.",
    "threads.",
    "vectored.",
)


@dataclass(frozen=True, slots=True)
class S3Access:
    """The access of pyarrow to one bucket.

    `endpoint` is None for Amazon's endpoint of the region; without keys, requests are not signed. Keys are left out of
    `repr()`, so no message holds them.
    """

    region: str
    scheme: str = "https"
    endpoint: str | None = None
    is_virtual: bool = False
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    def without_secrets(self, text: str) -> str:
        """The text with each of the keys in it replaced."""
        for each in (self.access_key, self.secret_key, self.session_token):
            text = text.replace(each, "***") if each else text
        return text


def bucket_of(uri: str) -> str | None:
    """The bucket of a file as S3A may name it, None for other storage.

    >>> bucket_of("s3a://lake/a%20b.parquet"), bucket_of("file:///a")
    ('lake', None)
    """
    scheme, _, rest = uri.partition("://")
    return (rest.partition("/")[0] or None) if scheme in SCHEMES else None


def object_of(uri: str) -> str:
    """Bucket and key of a file, as pyarrow names it; a URI is percent-encoded.

    >>> object_of("s3a://lake/a%20b.parquet")
    'lake/a b.parquet'
    """
    _, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    return f"{bucket}/{unquote(key)}"


def s3_access(bucket: str, settings: Mapping[str, str]) -> S3Access | Reason:
    """The access to a bucket by Hadoop's settings with full names; settings of the bucket override general ones.

    A `Reason` if pyarrow may read other bytes, or with other credentials, than S3A.
    """
    found = _of_bucket(bucket, settings)
    if not bucket or not bucket.replace("-", "").replace(".", "").isalnum():
        return _refused(bucket, "its name is no host name")
    if (other := _other_setting(found)) is not None:
        return _refused(bucket, f"{PREFIX}{other} is set")
    if settings.get(_KEY_STORE, "").strip() or settings.get(_CLEAR_TEXT, "true").strip().lower() == "false":
        return _refused(bucket, f"keys may lie in {_KEY_STORE}")
    for name in _ALGORITHMS:
        if (algorithm := found.get(name, "")) not in _STORE_DECRYPTS:
            return _refused(bucket, f"{PREFIX}{name} is {algorithm}")
    keys = _keys(bucket, found)
    return keys if isinstance(keys, Reason) else _endpoint(bucket, found, keys)


def _of_bucket(bucket: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings by their names behind `fs.s3a.`, without white space."""
    found = {name[len(PREFIX) :]: value.strip() for name, value in settings.items() if name.startswith(PREFIX)}
    own = f"bucket.{bucket}."
    over = {name[len(own) :]: value for name, value in found.items() if name.startswith(own)}
    return {**found, **{name: value for name, value in over.items() if name != "impl"}}


def _other_setting(found: Mapping[str, str]) -> str | None:
    """A setting that is neither supported nor known to have no effect on the bytes read."""
    known = _READ | _HARMLESS
    others = (name for name in sorted(found) if name not in known and not name.startswith(_HARMLESS_UNDER))
    return next((name for name in others if found[name].lower() not in {"", "false"}), None)


def _keys(bucket: str, found: Mapping[str, str]) -> dict[str, str] | Reason:
    """The keys of the first provider that has any; empty if requests are not signed."""
    listed = [each.strip() for each in found.get("aws.credentials.provider", "").split(",") if each.strip()]
    keys = {name: found.get(name.replace("_", "."), "") for name in ("access_key", "secret_key", "session_token")}
    for provider in listed or _DEFAULT_PROVIDERS:
        if provider == _ANONYMOUS:
            return {}
        if provider not in _BY_KEYS:
            return _refused(bucket, f"{provider} may give the credentials")
        if provider == _TEMPORARY and all(keys.values()):
            return keys
        if provider != _TEMPORARY and keys["access_key"] and keys["secret_key"]:
            return {name: keys[name] for name in ("access_key", "secret_key")}
    return _refused(bucket, f"{PREFIX}access.key or {PREFIX}secret.key is not set")


def _endpoint(bucket: str, found: Mapping[str, str], keys: Mapping[str, str]) -> S3Access | Reason:
    region = found.get("endpoint.region", "")
    if not region or region in _NO_REGIONS:
        # S3A looks for the region by requests of its own.
        return _refused(bucket, f"{PREFIX}endpoint.region names none")
    scheme = "http" if found.get("connection.ssl.enabled", "").lower() == "false" else "https"
    is_path_style = found.get("path.style.access", "").lower() == "true"
    given, separator, rest = found.get("endpoint", "").rpartition("://")
    scheme, host = (given.lower() if separator else scheme), rest.rstrip("/")
    if scheme not in {"http", "https"} or any(each in host for each in "/@?#,"):
        return _refused(bucket, f"{PREFIX}endpoint is no host")
    if host not in {"", _AWS}:
        return S3Access(region, scheme, host, not is_path_style, **keys)
    if is_path_style:
        # Without an endpoint pyarrow names buckets as hosts.
        return _refused(bucket, f"{PREFIX}path.style.access is set without {PREFIX}endpoint")
    return S3Access(region, scheme, None, is_virtual=True, **keys)


def _refused(bucket: str, detail: str) -> Reason:
    return Reason(ReasonCode.NOT_READ_BY_ARROW, f"s3a://{bucket}", detail)


_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def s3_buckets(spark: SparkSession, uris: Iterable[str]) -> dict[str, S3Access] | Reason:
    """The access to the bucket of each file in a store, by the bucket's name; a `Reason` if one is not supported."""
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
        # The settings with which the file system was created: Hadoop caches it, and the session may have changed since.
        return s3_access(bucket, _settings(spark, system.getConf()))
    except Py4JError as error:
        # The error's message is left out, since it may hold secrets.
        kind = error.java_exception.getClass().getName() if isinstance(error, Py4JJavaError) else type(error).__name__
        return Reason(ReasonCode.NOT_READ_BY_ARROW, root, f"{kind} at its settings")


def _system(spark: SparkSession, root: str) -> Any:
    jvm = java_names(spark)
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(f"{root}/"))
    return path.getFileSystem(hadoop_conf(spark))


def _settings(spark: SparkSession, conf: Any) -> dict[str, str]:
    """All settings of S3A and of key stores, fetched as one text, since each setting would be a call."""
    mapper = java_names(spark).com.fasterxml.jackson.databind.ObjectMapper()
    found = json.loads(mapper.writeValueAsString(conf.getPropsWithPrefix(PREFIX)))
    others = {name: conf.get(name) for name in KEY_STORE_SETTINGS}
    return {
        **{f"{PREFIX}{name}": value for name, value in found.items() if value is not None},
        **{name: value for name, value in others.items() if value is not None},
    }
