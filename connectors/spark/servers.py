"""Spark's own servers for clients in other processes, started in the JVM of a session: Spark Connect and Thrift (JDBC).

Both are part of the jars that pip installs with PySpark.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from connectors.spark.jvm import JavaFile, instance, java_message, java_names, jvm_context, jvm_session
from pruning.errors import EnvironmentProblem

CONNECT, THRIFT = "connect", "thrift"
_CONNECT_ADDRESS, _CONNECT_PORT = "spark.connect.grpc.binding.address", "spark.connect.grpc.binding.port"
# Hive reads them from the conf of Hadoop, which takes them from confs of this prefix.
_HADOOP = "spark.hadoop."
_THRIFT_ADDRESS, _THRIFT_PORT = "hive.server2.thrift.bind.host", "hive.server2.thrift.port"
_SCRATCH = (
    "hive.exec.scratchdir",
    "hive.exec.local.scratchdir",
    "hive.downloaded.resources.dir",
    "hive.server2.logging.operation.log.location",
)
_SESSIONS = JavaFile("connectors.spark", "ThriftSessions")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The kind of a server, and where it listens."""

    kind: str
    address: str
    port: int

    @staticmethod
    def free(kind: str, address: str, port: int) -> Endpoint:
        """The endpoint; port 0 is replaced by a free one, which the server may still lose to another process.

        `EnvironmentProblem` where nothing can listen there.
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                # As servers do: connections of a server that has just ended may linger.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((address, port))
                return Endpoint(kind, address, int(probe.getsockname()[1]))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            msg = f"Cannot listen on {address!r}, port {port}: {why}; name another address or port"
            raise EnvironmentProblem(msg) from error

    @property
    def url(self) -> str:
        """The text by which a client connects."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"sc://{host}:{self.port}" if self.kind == CONNECT else f"jdbc:hive2://{host}:{self.port}"

    def confs(self, scratch: Path) -> Mapping[str, str]:
        """The confs that a session must have from its start; Hive keeps temporary files in the folder `scratch`."""
        if self.kind == CONNECT:
            return {_CONNECT_ADDRESS: self.address, _CONNECT_PORT: str(self.port)}
        hive = {_THRIFT_ADDRESS: self.address, _THRIFT_PORT: str(self.port)}
        hive |= {name: str(scratch / name) for name in _SCRATCH}
        return {f"{_HADOOP}{name}": value for name, value in hive.items()}


@contextmanager
def served(spark: SparkSession, endpoint: Endpoint) -> Iterator[None]:
    """A context in which the server of an endpoint runs; the session was started with the confs of the endpoint.

    `EnvironmentProblem` where Spark does not have the server, or the server does not start.
    """
    start, stop = (_connect if endpoint.kind == CONNECT else _thrift)(spark)
    try:
        server = start()
    except Py4JJavaError as error:
        msg = f"Cannot serve {endpoint.kind} on {endpoint.address!r}, port {endpoint.port}: {java_message(error)}"
        raise EnvironmentProblem(msg) from error
    try:
        yield
    finally:
        # It has ended already where the Java process has.
        with suppress(Py4JError, OSError):
            stop(server)


def _connect(spark: SparkSession) -> tuple[Any, Any]:
    java = java_names(spark)
    service = _module(java.org.apache.spark.sql.connect.service, "SparkConnectService", "spark-connect")

    def stop(_: object) -> None:
        units = java.java.util.concurrent.TimeUnit.SECONDS
        some = java.scala.Option.apply
        service.stop(some(10), some(units))

    return lambda: service.start(jvm_context(spark)), stop


def _thrift(spark: SparkSession) -> tuple[Any, Any]:
    package = java_names(spark).org.apache.spark.sql.hive.thriftserver
    service = _module(package, "HiveThriftServer2", "spark-hive-thriftserver")
    ends_java_on_errors = False

    def start() -> Any:
        # Else the database in memory that Hive starts writes a log to the working directory.
        java_names(spark).java.lang.System.setProperty("derby.stream.error.file", os.devnull)
        server = service.startWithSparkSession(jvm_session(spark), ends_java_on_errors)
        loader = jvm_session(spark).sharedState().jarClassLoader()
        getattr(service, "eventManager_$eq")(instance(spark, _SESSIONS, jvm_context(spark), loader))
        return server

    return start, lambda server: server.stop()


def _module(package: Any, name: str, jar: str) -> Any:
    """A singleton object of Scala."""
    found = getattr(package, f"{name}$")
    if isinstance(found, JavaPackage) or not isinstance(found, JavaClass):
        msg = f"Cannot serve: found no class {name}, expected the jar {jar} among those of Spark"
        raise EnvironmentProblem(msg)
    return getattr(found, "MODULE$")
