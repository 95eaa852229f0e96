"""The process above a standalone cluster: a master and workers of its own, until standard input ends.

It says one line of JSON when all workers are registered: `{"master": ..., "processes": {"worker-0": ..., ...}}`. Who
started it may end in any way: its end of the pipe is closed then, and nothing of the cluster is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyspark

from sample_data.process_tree import below

_HOST = "127.0.0.1"
# One address by two names: Spark repeats a slow task only on a host of another name.
WORKER_HOSTS = (_HOST, "localhost")
# By this Python workers know which host they are on.
HOST = "SCANPRUNE_HOST"
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_URL = re.compile(rb"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(rb"Registering worker ")
_SECONDS_TO_START, _SECONDS_TO_END, _SECONDS_BETWEEN_LOOKS = 60.0, 10.0, 0.05
# An executor's heap of a gigabyte, and what Python workers of it take.
_WORKER_MEMORY = "1500m"


def main(folder: Path) -> None:
    """Runs the cluster; logs and work folders lie below `folder`."""
    started: list[subprocess.Popen[bytes]] = []
    # A request to end goes through the same door as the end of the pipe.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        master = _java(folder, "master", [_MASTER, "--host", _HOST, "--port", "0", "--webui-port", "0"])
        started.append(master)
        url = _found(folder / "master.log", master, _URL.search).group(1).decode()
        for at, host in enumerate(WORKER_HOSTS):
            started.append(_java(folder, f"worker-{at}", _worker(folder, at, host, url), host))
        _found(folder / "master.log", master, lambda text: len(_REGISTERED.findall(text)) >= len(WORKER_HOSTS) or None)
        names = ("master", *(f"worker-{at}" for at in range(len(WORKER_HOSTS))))
        processes = {name: each.pid for name, each in zip(names, started, strict=True)}
        sys.stdout.write(json.dumps({"master": url, "processes": processes}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        _end(started)


def _worker(folder: Path, at: int, host: str, url: str) -> Sequence[str]:
    own = ["--cores", "1", "--memory", _WORKER_MEMORY, "--work-dir", str(folder / f"work-{at}")]
    return [_WORKER, "--host", host, "--port", "0", "--webui-port", "0", *own, url]


def _java(folder: Path, name: str, command: Sequence[str], host: str = _HOST) -> subprocess.Popen[bytes]:
    """Spark's script becomes the Java process, so the id is that; executors get the environment of their worker."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        HOST: host,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        # What the runner's own Spark is told is none of theirs, and neither is a configuration of this machine.
        "SPARK_SUBMIT_OPTS": "",
        "SPARK_CONF_DIR": str(folder / "no-conf"),
        "TMPDIR": str(folder),
    }
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _found(log: Path, process: subprocess.Popen[bytes], find: Callable[[bytes], object]) -> object:
    """What `find` finds in a log, as soon as it does; `OSError` where it will not."""
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until and process.poll() is None:
        if (found := find(log.read_bytes())) is not None:
            return found
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    last = log.read_text(errors="replace").strip().splitlines()[-3:]
    raise OSError(f"the cluster does not come up: {' | '.join(last)}")


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """All of them and all below them; executors are Java's children, and Python's workers those of executors."""
    known = {process for each in started for process in below(each.pid)}
    for each in reversed(started):
        each.terminate()
    until = time.monotonic() + _SECONDS_TO_END
    for each in started:
        with contextlib.suppress(subprocess.TimeoutExpired):
            each.wait(max(0.1, until - time.monotonic()))
    # Whoever lost its parent is no longer below it.
    for process in known - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    for each in started:
        each.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
