"""The server of the object store: versitygw, which serves a folder by S3, built from source once."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from connectors.cli.command import default_folder
from pruning.errors import EnvironmentProblem
from sample_data.cache import cache_folder, made_whole

VERSION = "1.8.0"
_MODULE = f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"
_NAME = f"versitygw-{VERSION}"
_BUILT = "bin"
# The folder of Go's own installer, which is often not on PATH.
_USUAL_GO = "/usr/local/go/bin/go"


def gateway(folder: Path | None = None) -> Path:
    """The path of the server; it is built below `folder`, by default the user's cache, if it is missing.

    The build takes some minutes and needs the network. Raises `EnvironmentProblem` if there is no server and the build
    fails.
    """
    home = (folder or default_folder()) / _NAME
    built = _program(home)
    if built.exists():
        return built
    go = shutil.which("go") or shutil.which(_USUAL_GO)
    if go is None:
        raise EnvironmentProblem(
            "An object store needs Go once, to build its server; found no go on PATH: install it from https://go.dev/dl"
        )
    with cache_folder(home, {"versitygw": VERSION}, (_BUILT,)):
        # Another process may have built the server meanwhile.
        if not built.exists():
            with made_whole(home / _BUILT) as unfinished:
                _build(go, unfinished)
    return built


def gateway_problem(folder: Path | None = None) -> str | None:
    """One line that says how to build the server if it is missing; None if it exists."""
    built = _program((folder or default_folder()) / _NAME)
    if built.exists():
        return None
    return f"no object store at {str(built)!r}: build it with python -m sample_data.object_store, which needs Go"


def _program(home: Path) -> Path:
    return home / _BUILT / "versitygw"


def _build(go: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        environment = {
            **os.environ,
            "CGO_ENABLED": "0",
            "GOBIN": str(target),
            # All downloads and build products are in the temporary folder; read-only modules could not be removed.
            "GOPATH": f"{work}/path",
            "GOCACHE": f"{work}/cache",
            "GOFLAGS": "-modcacherw",
        }
        # Compiling one package at a time takes a fifth of the memory.
        command = [go, "install", "-p", "1", "-trimpath", "-ldflags", "-s -w", _MODULE]
        answer = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or ["no word of why"])[-1]
        raise EnvironmentProblem(f"Cannot build {_MODULE!r}, which needs the network: {last}")
