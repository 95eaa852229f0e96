"""Where a contest takes place: on files of this machine, or on an object store."""

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
# The store counts these reads truly, too, and without them stock Spark reads more and takes longer.
_AS_USUAL: Mapping[str, str] = MappingProxyType({"spark.hadoop.parquet.hadoop.vectored.io.enabled": "true"})
# As Spark names it; others are told to read it as they read `s3://`.
S3A = "s3a://"


@dataclass(frozen=True, slots=True)
class Site:
    """A place of tables; on an object store also what that has served, and how engines find it."""

    place: Place
    store: ObjectStore | None = None

    @property
    def conf(self) -> tuple[str, ...]:
        """Confs of a Spark that reads it, as `name=value`."""
        if self.store is None:
            return ()
        return tuple(f"{name}={value}" for name, value in {**s3a_conf(self.store.access), **_AS_USUAL}.items())

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of processes that read it."""
        return {} if self.store is None else self.store.access.environment

    def bring(self, folder: Path, key: str) -> None:
        """Puts the files of a folder to where engines read them; local ones are there."""
        if self.store is not None:
            self.store.upload(folder, key)

    def reshape(self, shape: Shape) -> None:
        """Lets an object store seem as far away as that."""
        if self.store is not None:
            self.store.reshape(shape)

    def reset(self) -> Served | None:
        """What an object store has served since this was last asked."""
        return None if self.store is None else self.store.reset()


@contextmanager
def site(place: str, folder: Path) -> Iterator[Site]:
    """The site for one of `PLACES`: `folder` itself, or an object store, which is empty and ends with the block."""
    if place == LOCAL:
        yield Site(Place(str(folder)))
        return
    with object_store() as store:
        yield Site(Place(store.bucket, S3A, store.filesystem()), store)
