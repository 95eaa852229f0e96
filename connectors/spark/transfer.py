"""Transfer of long lists, texts and bytes between the JVM and Python in few calls of py4j.

- `JvmList` maps and filters a list inside the JVM. Each call costs about 0.2 ms, and a closure cannot be sent, so
  methods are looked up by reflection and passed to `java.util.stream` as functions.
- `long_text()` and `long_bytes()` fetch compressed pieces that each fit into one packet. py4j sends an answer of more
  than 8 KB as several small writes without TCP_NODELAY, and each such answer waits some 40 ms for a delayed
  acknowledgement.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from connectors.spark.jvm import JavaFile, instance, java_names, new_array
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray

_GETTERS = "_scanprune_getters"


class JvmList:
    """A `java.util.List`; methods are named in full, such as `java.net.URI.getPath`, and take no argument."""

    def __init__(self, spark: SparkSession, items: Any) -> None:
        self._spark = spark
        self._jvm = java_names(spark)
        self.items = items

    @staticmethod
    def of_scala(spark: SparkSession, sequence: Any) -> JvmList:
        """The list of a Scala sequence."""
        return JvmList(spark, java_names(spark).scala.jdk.javaapi.CollectionConverters.asJava(sequence))

    def __len__(self) -> int:
        return int(self.items.size())

    def map(self, *methods: str) -> JvmList:
        """The values that the methods return, called one after the other on each element."""
        return JvmList(self._spark, self._mapped(methods).toList())

    def texts(self, *methods: str) -> list[str]:
        """The results of the methods on each element as text, which must not hold a line feed."""
        return long_text(self._spark, self._mapped(methods).toList()).split("\n") if len(self) else []

    def numbers(self, *methods: str) -> IntArray:
        """The results of the methods on each element as integers."""
        return np.array(self.texts(*methods), np.int64)

    def flattened(self, method: str) -> JvmList:
        """The elements of all Scala sequences that `method` returns, one after the other."""
        handles, types = self._jvm.java.lang.invoke.MethodHandles, self._jvm.java.lang.invoke.MethodType
        converters = self._class("scala.jdk.javaapi.CollectionConverters")
        sequence, items = self._class("scala.collection.Seq"), self._class("java.util.List")
        to_list = handles.publicLookup().findStatic(converters, "asJava", types.methodType(items, sequence))
        stream = self._handle("java.util.Collection.stream")
        chain = self._handle(method)
        for each in (to_list, stream):
            into = each.type().parameterType(0)
            chain = handles.filterReturnValue(chain.asType(chain.type().changeReturnType(into)), each)
        return JvmList(self._spark, self.items.stream().flatMap(self._function(chain)).toList())

    def where(self, mask: BoolArray) -> JvmList:
        """The elements where `mask` is True."""
        java = self._jvm.java
        bits = java.util.BitSet.valueOf(np.packbits(mask, bitorder="little").tobytes())
        get_type = java.lang.invoke.MethodType.methodType(self._class("java.lang.Object"), java.lang.Integer.TYPE)
        lookup = java.lang.invoke.MethodHandles.publicLookup()
        get = lookup.findVirtual(self._class("java.util.List"), "get", get_type).bindTo(self.items)
        return JvmList(self._spark, bits.stream().mapToObj(self._proxy("java.util.function.IntFunction", get)).toList())

    def pass_to(self, target: Any, method: str, element: str, constant: Any) -> None:
        """Call `method` of `target` with each element, declared as the class `element`, and with one constant."""
        java = self._jvm.java
        owner, _, name = method.rpartition(".")
        types = new_array(self._spark, java.lang.Class, 2)
        types[0], types[1] = self._class(element), constant.getClass()
        constants = new_array(self._spark, java.lang.Object, 1)
        constants[0] = constant
        handles = java.lang.invoke.MethodHandles
        found = handles.publicLookup().unreflect(self._class(owner).getMethod(name, types)).bindTo(target)
        self.items.stream().forEach(
            self._proxy("java.util.function.Consumer", handles.insertArguments(found, 1, constants))
        )

    def as_scala(self) -> Any:
        """A Scala `Seq` of the elements."""
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(self.items).toSeq()

    def as_array(self, element: str) -> Any:
        """A Java array of the elements, which are of the class `element`."""
        tag = self._jvm.scala.reflect.ClassTag.apply(self._class(element))
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(self.items).toArray(tag)

    def _mapped(self, methods: Iterable[str]) -> Any:
        stream = self.items.stream()
        for method in methods:
            stream = stream.map(self._getter(method))
        return stream

    def _getter(self, method: str) -> Any:
        """The method as a Java function, made once in a session."""
        known: dict[str, Any] = self._spark.__dict__.setdefault(_GETTERS, {})
        if method not in known:
            known[method] = self._function(self._handle(method))
        return known[method]

    def _handle(self, method: str) -> Any:
        owner, _, name = method.rpartition(".")
        no_classes = new_array(self._spark, self._jvm.java.lang.Class, 0)
        found = self._class(owner).getMethod(name, no_classes)
        return self._jvm.java.lang.invoke.MethodHandles.publicLookup().unreflect(found)

    def _function(self, handle: Any) -> Any:
        return self._proxy("java.util.function.Function", handle)

    def _proxy(self, interface: str, handle: Any) -> Any:
        return self._jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(self._class(interface), handle)

    def _class(self, name: str) -> Any:
        return self._jvm.org.apache.spark.util.Utils.classForName(name, True, False)  # noqa: FBT003 - Java has no names


_PACKED = JavaFile("connectors.spark", "PackedText")
_END = "."


def long_text(spark: SparkSession, lines: Any) -> str:
    """The elements of a collection in the JVM as text, with a line feed between them."""
    return packed_bytes(instance(spark, _PACKED, lines)).decode()


def long_bytes(spark: SparkSession, stream: Any) -> bytes:
    """The bytes written to a `ByteArrayOutputStream` in the JVM."""
    return packed_bytes(instance(spark, _PACKED, stream))


def packed_bytes(packed: Any) -> bytes:
    """The bytes in an object of the JVM that has the method `piece` of `PackedText.java`."""
    pieces = [str(packed.piece(0))]
    while not pieces[-1].endswith(_END):
        pieces.append(str(packed.piece(len(pieces))))
    return zlib.decompress(base64.b64decode("".join(pieces).removesuffix(_END)))
