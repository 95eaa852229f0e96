"""A version of Spark's daemon of Python workers whose workers have armed faults.

The setting `spark.python.daemon.module` selects this module.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

from pyspark import daemon

_worker: Callable[[socket.socket, bool], int] = daemon.worker


def worker(connection: socket.socket, authenticated: bool) -> int:  # noqa: FBT001 - PySpark's signature
    """The main function of a forked worker. It imports late, because Arrow's threads must not start before the fork."""
    from connectors.arrow_scan.reader import ArrowReader  # noqa: PLC0415 - as above
    from pruning.keys.builder import KeyBuilder  # noqa: PLC0415 - as above
    from tests.cluster.faults import Place, strike  # noqa: PLC0415 - as above

    read, close = ArrowReader.read, KeyBuilder.close

    def read_then_strike(self: ArrowReader, part: Any) -> Iterator[Any]:
        yield from read(self, part)
        strike(Place.SCAN)

    def strike_then_close(self: KeyBuilder, *arguments: Any) -> None:
        strike(Place.KEYS)
        close(self, *arguments)

    setattr(ArrowReader, "read", read_then_strike)  # noqa: B010 - a type checker knows what a method is
    setattr(KeyBuilder, "close", strike_then_close)  # noqa: B010 - as above
    return _worker(connection, authenticated)


def main() -> None:
    """Runs the daemon until its standard input ends."""
    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    main()
