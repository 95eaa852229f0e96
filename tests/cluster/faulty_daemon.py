"""A version of Spark's daemon of Python workers whose workers have armed faults.

The setting `spark.python.daemon.module` selects this module.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from pyspark import daemon

_worker: Callable[[socket.socket, bool], int] = daemon.worker


def worker(connection: socket.socket, authenticated: bool) -> int:  # noqa: FBT001 - PySpark's signature
    """The main function of a forked worker. It imports late, because Arrow's threads must not start before the fork."""
    from pruning.keys.builder import KeyBuilder  # noqa: PLC0415 - as above
    from tests.cluster.faults import Place, strike  # noqa: PLC0415 - as above

    close = KeyBuilder.close

    def strike_then_close(self: KeyBuilder, *arguments: Any) -> None:
        strike(Place.KEYS)
        close(self, *arguments)

    setattr(KeyBuilder, "close", strike_then_close)  # noqa: B010 - a type checker knows what a method is
    return _worker(connection, authenticated)


def main() -> None:
    """Runs the daemon until its standard input ends."""
    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    main()
