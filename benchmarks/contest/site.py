"""The site of a contest: the local disk or an object store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.contest.place import Place
from sample_data.object_store.s3a import s3a_conf
from sample_data.object_store.shape import Shape
from sample_data.object_store.store import ObjectStore, Served, object_store

LOCAL, S3 = "local", "s3"
PLACES = (LOCAL, S3)
# Vectored reads stay on: the store counts them correctly, and without them stock Spark reads more and is slower.
_AS_USUAL: Mapping[str, str] = MappingProxyType({"spark.hadoop.parquet.hadoop.vectored.io.enabled": "true"})
# The URI scheme of Spark; other engines are configured to treat it as `s3://`.
S3A = "s3a://"


@dataclass(frozen=True, slots=True)
class Site:
    """A place of tables, with the object store that holds them, if any."""

    place: Place
    store: ObjectStore | None = None

    @property
    def conf(self) -> tuple[str, ...]:
        """Settings of a Spark session that reads the site, as `name=value`."""
        if self.store is None:
            return ()
        return tuple(f"{name}={value}" for name, value in {**s3a_conf(self.store.access), **_AS_USUAL}.items())

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of processes that read the site."""
        return {} if self.store is None else self.store.access.environment

    def bring(self, folder: Path, key: str) -> None:
        """Uploads the files of a folder to the object store; a local site needs no upload."""
        if self.store is not None:
            self.store.upload(folder, key)

    def reshape(self, shape: Shape) -> None:
        """Sets latency and bandwidth of the object store; has no effect on a local site."""
        if self.store is not None:
            self.store.reshape(shape)

    def reset(self) -> Served | None:
        """The requests and bytes that the object store has served since the last reset; None for a local site."""
        return None if self.store is None else self.store.reset()


@contextmanager
def site(place: str, folder: Path) -> Iterator[Site]:
    """The site for one of `PLACES`: `folder` itself, or a new, empty object store that ends with the block."""
    if place == LOCAL:
        yield Site(Place(str(folder)))
        return
    with object_store() as store:
        yield Site(Place(store.bucket, S3A, store.filesystem()), store)
