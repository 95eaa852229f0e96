"""The supervisor process of a standalone cluster, which runs a master and workers until standard input ends.

The supervisor prints one line of JSON when all workers are registered:
`{"master": ..., "processes": {"worker-0": ..., ...}}`. However its parent process ends, the pipe to standard input is
closed, and the supervisor ends the cluster.
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
# One address by two names, because Spark runs a speculative copy of a task only on another host name.
WORKER_HOSTS = (_HOST, "localhost")
# The environment variable that tells Python workers their host name.
HOST = "SCANPRUNE_HOST"
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_URL = re.compile(rb"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(rb"Registering worker ")
_SECONDS_TO_START, _SECONDS_TO_END, _SECONDS_BETWEEN_LOOKS = 60.0, 10.0, 0.05
# Memory for the heap of an executor, 1 GB, and for its Python workers.
_WORKER_MEMORY = "1500m"


def main(folder: Path) -> None:
    """Runs the cluster, with logs and work folders below `folder`."""
    started: list[subprocess.Popen[bytes]] = []
    # SIGTERM ends the cluster in the same way as the end of standard input.
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
    """Starts a Java process by Spark's script, which execs Java; executors inherit the environment of their worker."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        HOST: host,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        # Without the options of the driver's Spark and without Spark configuration files of this machine.
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
    """The first result of `find` on a log that is not None; raises `OSError` after a timeout."""
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until and process.poll() is None:
        if (found := find(log.read_bytes())) is not None:
            return found
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    last = log.read_text(errors="replace").strip().splitlines()[-3:]
    raise OSError(f"the cluster does not come up: {' | '.join(last)}")


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends the started processes and all of their descendants: executors and Python workers."""
    known = {process for each in started for process in below(each.pid)}
    for each in reversed(started):
        each.terminate()
    until = time.monotonic() + _SECONDS_TO_END
    for each in started:
        with contextlib.suppress(subprocess.TimeoutExpired):
            each.wait(max(0.1, until - time.monotonic()))
    # By ids from before, because an orphaned process is no longer a descendant.
    for process in known - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    for each in started:
        each.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
