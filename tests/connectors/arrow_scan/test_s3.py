"""Settings of Hadoop's S3A converted to those of pyarrow, and settings that keep Spark's reader, without Java
or a store.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from connectors.arrow_scan.s3 import S3Access, bucket_of, object_of, s3_access
from pruning.reasons import Reason, ReasonCode

KEY, SECRET, TOKEN = "AKIAEXAMPLE", "a/secret+key", "a token"
HADOOP = "org.apache.hadoop.fs.s3a."
SIMPLE, TEMPORARY = f"{HADOOP}SimpleAWSCredentialsProvider", f"{HADOOP}TemporaryAWSCredentialsProvider"
ANONYMOUS = f"{HADOOP}AnonymousAWSCredentialsProvider"
ENVIRONMENT = "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
KEYS = {"access.key": KEY, "secret.key": SECRET}
LEAST = {**KEYS, "endpoint.region": "eu-west-1"}
OWN = {**LEAST, "endpoint": "127.0.0.1:7070", "path.style.access": "true", "connection.ssl.enabled": "false"}
SIGNED = {"access_key": KEY, "secret_key": SECRET}
AMAZON = S3Access("eu-west-1", is_virtual=True, **SIGNED)
BY_DEFAULT = f"\n {TEMPORARY},\n {SIMPLE},\n {ENVIRONMENT},\n {HADOOP}auth.IAMInstanceCredentialsProvider\n"


def access(settings: dict[str, str], **others: str) -> S3Access | Reason:
    return s3_access("lake", {**{f"fs.s3a.{name}": value for name, value in settings.items()}, **others})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (LEAST, AMAZON),
        ({**LEAST, "endpoint": "s3.amazonaws.com"}, AMAZON),
        (OWN, S3Access("eu-west-1", "http", "127.0.0.1:7070", **SIGNED)),
        ({**OWN, "endpoint": "https://s3.local/"}, S3Access("eu-west-1", "https", "s3.local", **SIGNED)),
        ({**OWN, "endpoint": "HTTP://s3.local"}, S3Access("eu-west-1", "http", "s3.local", **SIGNED)),
        (
            {**OWN, "path.style.access": "false"},
            S3Access("eu-west-1", "http", "127.0.0.1:7070", is_virtual=True, **SIGNED),
        ),
        ({**LEAST, "access.key": f" {KEY}\n"}, AMAZON),
        ({**LEAST, "session.token": TOKEN}, replace(AMAZON, session_token=TOKEN)),
        (
            {**LEAST, "session.token": TOKEN, "aws.credentials.provider": SIMPLE},
            AMAZON,
        ),
        ({**LEAST, "aws.credentials.provider": BY_DEFAULT}, AMAZON),
        (
            {**LEAST, "aws.credentials.provider": f"{SIMPLE},{ENVIRONMENT}"},
            AMAZON,
        ),
        ({**LEAST, "aws.credentials.provider": ANONYMOUS}, S3Access("eu-west-1", is_virtual=True)),
        (
            {"endpoint.region": "eu-west-1", "aws.credentials.provider": f"{SIMPLE}, {ANONYMOUS}"},
            S3Access("eu-west-1", is_virtual=True),
        ),
        (
            {**LEAST, "encryption.algorithm": "SSE-KMS", "encryption.key": "arn"},
            AMAZON,
        ),
        (
            {
                **LEAST,
                "requester.pays.enabled": "false",
                "proxy.host": " ",
                "committer.name": "magic",
                "bucket.probe": "0",
            },
            AMAZON,
        ),
    ],
)
def test_supported_settings(settings, expected):
    assert expected == access(settings)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({**KEYS}, "fs.s3a.endpoint.region names none"),
        ({**LEAST, "endpoint.region": "sdk"}, "fs.s3a.endpoint.region names none"),
        ({**LEAST, "path.style.access": "true"}, "fs.s3a.path.style.access is set without fs.s3a.endpoint"),
        ({**OWN, "endpoint": "s3.local/path"}, "fs.s3a.endpoint is no host"),
        ({**OWN, "endpoint": f"http://{KEY}:{SECRET}@s3.local"}, "fs.s3a.endpoint is no host"),
        ({**OWN, "endpoint": "ftp://s3.local"}, "fs.s3a.endpoint is no host"),
        ({"endpoint.region": "x"}, f"{ENVIRONMENT} may give the credentials"),
        ({"endpoint.region": "x", "access.key": KEY}, f"{ENVIRONMENT} may give the credentials"),
        (
            {**LEAST, "aws.credentials.provider": f"{HADOOP}auth.AssumedRoleCredentialProvider"},
            f"{HADOOP}auth.AssumedRoleCredentialProvider may give the credentials",
        ),
        ({**LEAST, "aws.credentials.provider": f"{ENVIRONMENT},{SIMPLE}"}, f"{ENVIRONMENT} may give the credentials"),
        (
            {"endpoint.region": "x", "aws.credentials.provider": SIMPLE},
            "fs.s3a.access.key or fs.s3a.secret.key is not set",
        ),
        (
            {**LEAST, "aws.credentials.provider": TEMPORARY},
            "fs.s3a.access.key or fs.s3a.secret.key is not set",
        ),
        ({**LEAST, "encryption.algorithm": "SSE-C"}, "fs.s3a.encryption.algorithm is SSE-C"),
        ({**LEAST, "encryption.algorithm": "CSE-KMS"}, "fs.s3a.encryption.algorithm is CSE-KMS"),
        ({**LEAST, "server-side-encryption-algorithm": "SSE-C"}, "fs.s3a.server-side-encryption-algorithm is SSE-C"),
        *(
            ({**LEAST, name: value}, f"fs.s3a.{name} is set")
            for name, value in {
                "accesspoint.required": "true",
                "access.grants.enabled": "true",
                "aws.credentials.provider.mapping": f"{SIMPLE}=com.example.Other",
                "client.s3.custom.headers": "x-a=b",
                "custom.signers": "one",
                "delegation.token.binding": "com.example.Binding",
                "endpoint.fips": "true",
                "http.signer.enabled": "true",
                "input.stream.custom.factory": "com.example.Factory",
                "metadatastore.impl": "com.example.Store",
                "proxy.host": "proxy",
                "requester.pays.enabled": "TRUE",
                "s3.client.factory.impl": "com.example.Factory",
                "security.credential.provider.path": "jceks://file/keys",
                "signing-algorithm": "one",
                "what.nobody.knows": "x",
            }.items()
        ),
    ],
)
def test_unsupported_settings_keep_spark_reader(settings, why):
    assert Reason(ReasonCode.NOT_READ_BY_ARROW, "s3a://lake", why) == access(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hadoop.security.credential.provider.path", "jceks://file/keys"),
        ("hadoop.security.credential.clear-text-fallback", "false"),
    ],
)
def test_credential_provider_keeps_spark_reader(name, value):
    assert isinstance(access(LEAST, **{name: ""}), S3Access)
    found = access(LEAST, **{name: value})
    assert isinstance(found, Reason)
    assert "hadoop.security.credential.provider.path" in found.detail


def test_bucket_settings_override_general_ones():
    over = {"bucket.lake.endpoint.region": "own", "bucket.lake.access.key": "b", "bucket.lake.impl": "x", "impl": "y"}
    assert S3Access("own", is_virtual=True, access_key="b", secret_key=SECRET) == access({**LEAST, **over})
    assert access(LEAST) == access({**LEAST, "bucket.other.proxy.host": "p", "bucket.lake.more.proxy.host": ""})
    for name in ("accesspoint.arn", "fs.s3a.secret.key", "requester.pays.enabled"):
        expected = Reason(ReasonCode.NOT_READ_BY_ARROW, "s3a://lake", f"fs.s3a.{name} is set")
        assert expected == access({**LEAST, f"bucket.lake.{name}": "x"})


@pytest.mark.parametrize("bucket", ["", "user:secret@lake", "a_b"])
def test_invalid_bucket_name_keeps_spark_reader(bucket):
    found = s3_access(bucket, {f"fs.s3a.{name}": value for name, value in LEAST.items()})
    assert isinstance(found, Reason)
    assert "its name is no host name" == found.detail


def test_secrets_are_hidden():
    found = access({**LEAST, "session.token": TOKEN})
    assert isinstance(found, S3Access)
    for key in (KEY, SECRET, TOKEN):
        assert key not in f"{found!r} {found} {[found]}"
    assert "*** and *** and ***" == found.without_secrets(f"{KEY} and {SECRET} and {TOKEN}")
    assert "nothing" == S3Access("x").without_secrets("nothing")
    assert found == pickle.loads(pickle.dumps(found))  # noqa: S301 - data that workers receive


def test_bucket_and_object_of_a_uri():
    assert ["b", "b", "b"] == [bucket_of(f"{scheme}://b/k") for scheme in ("s3a", "s3", "s3n")]
    others = ("file:///b/k", "/b/k", "gs://b/k", "//[b]/k", "/s3a:/b", "s3a")
    assert [None] * len(others) == [bucket_of(each) for each in others]
    assert "s3a" == bucket_of("s3a://s3a/k")
    assert "b/p=a%2Fb/c d#?.parquet" == object_of("s3a://b/p=a%252Fb/c%20d%23%3F.parquet")
