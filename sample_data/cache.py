"""A cache folder of generated tables, in which each table is complete, absent or being made."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# A callback with a description of the current step and the share of the whole call that is done (0 to 1).
Progress = Callable[[str, float], None]
Manifest = Mapping[str, str | int | float]

_MANIFEST = "manifest.json"
_LOCK = ".lock"
_UNFINISHED = ".part"


def quiet(_what: str, _share: float) -> None:
    """A progress callback that does nothing."""


@contextmanager
def cache_folder(folder: Path, manifest: Manifest, names: Iterable[str]) -> Iterator[None]:
    """Locks `folder` for this process, removes leftovers, and removes `names` if another manifest made them.

    Waits while another process has the lock. Raises `ValueError` if the folder has files that were not
    made here: files of a user are never deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_foreign(folder)
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _read(folder) != dict(manifest):
            for name in names:
                _remove(folder / name)
            (folder / _MANIFEST).write_text(json.dumps(dict(manifest), indent=2) + "\n", encoding="utf-8")
        _remove_unfinished(folder)
        yield


def is_made(folder: Path, manifest: Manifest, names: Iterable[str]) -> bool:
    """True if all of `names` exist and were made with this manifest."""
    return _read(folder) == dict(manifest) and all((folder / name).exists() for name in names)


def remove_unfinished(folder: Path) -> None:
    """Removes unfinished files of an interrupted process, unless another process has the lock of the folder."""
    if not (folder / _LOCK).exists():
        return
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        _remove_unfinished(folder)


@contextmanager
def made_whole(final: Path) -> Iterator[Path]:
    """A path to write to; it is renamed to `final` if the block succeeds, and removed otherwise."""
    unfinished = final.with_name(final.name + _UNFINISHED)
    try:
        yield unfinished
        unfinished.rename(final)
    finally:
        _remove(unfinished)


def _remove_unfinished(folder: Path) -> None:
    for leftover in folder.glob(f"*{_UNFINISHED}*"):
        _remove(leftover)


def _read(folder: Path) -> object:
    try:
        return json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _refuse_foreign(folder: Path) -> None:
    if not (folder / _LOCK).exists() and any(folder.iterdir()):
        raise ValueError(
            f"Cannot keep generated tables in {str(folder)!r}: it holds other files; name a new or empty folder"
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
