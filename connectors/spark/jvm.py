"""Access to the JVM: its sessions, plans and DataFrames, names of classes, Java classes of this project, errors.

Only `connectors.spark` uses the private attributes by which PySpark reaches its JVM, which `tests/test_layers.py`
checks. Names of packages and classes are looked up once. Small Java classes, for work that py4j calls cannot express,
are compiled inside Spark's own process.
"""

# ruff: noqa: SLF001 - PySpark has no public access to its JVM

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, cast

from py4j.clientserver import ClientServer
from py4j.java_gateway import JavaClass, JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark import RDD, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession

from pruning.errors import PruningError, UnsupportedSessionError
from pruning.reasons import Reason, ReasonCode

_NOT_PINNED = (
    "Cannot prune a whole session: found PYSPARK_PIN_THREAD=false, expected threads of Python that have threads of the "
    "JVM of their own; leave the variable unset, or use prune()"
)
_VIEW = "_scanprune_names"
_OF_ROWS = "_scanprune_of_rows"


def has_jvm(spark: SparkSession) -> bool:
    """False for Spark Connect, whose session is a remote one."""
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def is_stopped(spark: SparkSession) -> bool:
    """True for a classic session whose application has ended."""
    return getattr(spark.sparkContext, "_jsc", None) is None


def jvm_session(spark: SparkSession) -> Any:
    """The JVM's object of a classic session."""
    return spark._jsparkSession


def jvm_context(spark: SparkSession) -> Any:
    """The JVM's `SparkContext` of a classic session."""
    return spark.sparkContext._jsc.sc()


def jvm_frame(df: DataFrame) -> Any:
    """The JVM's object of a DataFrame."""
    return df._jdf


def query_execution(df: DataFrame) -> Any:
    """The JVM's `QueryExecution` of a DataFrame, which holds its plans."""
    return jvm_frame(df).queryExecution()


def analyzed_plan(df: DataFrame) -> Any:
    """The plan of a DataFrame before Spark optimises it."""
    return query_execution(df).analyzed()


def optimized_plan(df: DataFrame) -> Any:
    """The optimised plan of a DataFrame, made once; optimising may run jobs."""
    return query_execution(df).optimizedPlan()


def physical_plan(df: DataFrame) -> Any:
    """The physical plan of a DataFrame; an adaptive plan holds its final plan after it ran."""
    return query_execution(df).executedPlan()


def frame_of(spark: SparkSession, plan: Any) -> DataFrame:
    """The DataFrame of a logical plan in the JVM."""
    return frame_in(spark, jvm_session(spark), plan)


def frame_in(spark: SparkSession, session: Any, plan: Any) -> DataFrame:
    """The DataFrame of a logical plan that runs in a session of the JVM; Python takes it for one of `spark`."""
    jvm: Any = spark._jvm
    of_rows = jvm.__dict__.get(_OF_ROWS)
    if of_rows is None:
        # py4j asks the JVM at each mention of a static method whether the class has it.
        of_rows = jvm.__dict__[_OF_ROWS] = java_names(spark).org.apache.spark.sql.classic.Dataset.ofRows
    return DataFrame(of_rows(session, plan), spark)


def same_frame(df: DataFrame) -> DataFrame:
    """Another Python object for the same DataFrame, of the JVM or of Spark Connect."""
    if has_jvm(df.sparkSession):
        return DataFrame(jvm_frame(df), df.sparkSession)
    remote: Any = df
    return cast("DataFrame", type(remote)(remote._plan, remote.sparkSession))


def column_of(spark: SparkSession, expression: Any) -> Column:
    """The column of an expression in the JVM."""
    return Column(_expression_utils(spark).column(expression))


def make_date(spark: SparkSession, year: Any, month: Any, day: Any | None) -> Any:
    """The JVM's expression of a date of expressions of int, NULL where there is none; a month's first without a day."""
    names = java_names(spark).org.apache.spark.sql
    first = names.catalyst.expressions.Literal(1, names.types.DataTypes.IntegerType)
    return names.catalyst.expressions.MakeDate(year, month, first if day is None else day, False)  # noqa: FBT003 - Java


def column_of_java(column: Any) -> Column:
    """The column of a `Column` of the JVM."""
    return Column(column)


def _expression_utils(spark: SparkSession) -> Any:
    return getattr(getattr(java_names(spark).org.apache.spark.sql.classic, "ExpressionUtils$"), "MODULE$")


def hadoop_conf(spark: SparkSession) -> Any:
    """A new copy of the settings of Hadoop with those of a session."""
    return jvm_session(spark).sessionState().newHadoopConf()


def new_array(spark: SparkSession, element: Any, length: int) -> Any:
    """An array of the JVM; `element` is its class."""
    gateway: Any = spark.sparkContext._gateway
    return gateway.new_array(element, length)


def optimizer_rules(spark: SparkSession) -> list[Any]:
    """The rules that users added to the end of a session's optimiser."""
    names = java_names(spark).scala.jdk.javaapi.CollectionConverters
    return list(names.asJava(jvm_session(spark).experimental().extraOptimizations()))


def set_optimizer_rules(spark: SparkSession, rules: Sequence[Any]) -> None:
    """Replaces the rules that users added to the end of a session's optimiser."""
    java = java_names(spark)
    listed = java.scala.jdk.javaapi.CollectionConverters.asScala(java.java.util.ArrayList(list(rules))).toSeq()
    getattr(jvm_session(spark).experimental(), "extraOptimizations_$eq")(listed)


def start_callbacks(spark: SparkSession) -> None:
    """Lets the JVM call objects of Python, each in the thread whose call to the JVM led to it.

    `UnsupportedSessionError` where PySpark does not pin its threads to threads of the JVM.
    """
    gateway: Any = spark.sparkContext._gateway
    if not isinstance(gateway, ClientServer):
        raise UnsupportedSessionError(_NOT_PINNED)
    server = gateway.__dict__.get("_callback_server")
    if server is not None and server.is_shutdown:
        # PySpark would take it for one that answers.
        gateway._callback_server = None
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]


def session_over(spark: SparkSession, session: Any) -> SparkSession:
    """A Python object for a session of the JVM of `spark`."""
    # The constructor gives the method `toDF` of RDDs the new session.
    to_frame: Any = getattr(RDD, "toDF", None)
    try:
        return SparkSession(spark.sparkContext, session)
    finally:
        if to_frame is not None:
            RDD.toDF = to_frame  # type: ignore[method-assign]


def started_jvm() -> tuple[Any, Any]:
    """The context of this process and its gateway to the JVM, None each where there is none."""
    return SparkContext._active_spark_context, SparkContext._gateway


class JavaNames:
    """The members of a view or package of py4j, by the same names.

    py4j asks the JVM at each dot whether there is such a class, and Java opens all of Spark's jars in vain for each
    package: with the imports that PySpark adds, `org` alone is looked for in a dozen of them. That was a third of
    what Java did for a query over small tables.
    """

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if isinstance(found, JavaPackage):
            found = JavaNames(found)
        elif not isinstance(found, JavaClass):
            return found
        # Later look-ups find the attribute without a call to the JVM.
        self.__dict__[name] = found
        return found


def java_names(spark: SparkSession) -> Any:
    """The `JavaNames` of a classic session's JVM, stored with it."""
    jvm: Any = spark._jvm
    names = jvm.__dict__.get(_VIEW)
    if names is None:
        names = jvm.__dict__[_VIEW] = JavaNames(jvm)
    return names


_CLASSES = "_scanprune_classes"
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class JavaFile:
    """A class of Java in the folder `java` of a package, with the classes that are compiled together with it.

    The name is unique among all packages. A name with dots in `others` is a class of another package; each class that
    uses it is compiled with its own copy.
    """

    package: str
    name: str
    others: tuple[str, ...] = ()

    def source(self) -> str:
        """One compilation unit, which is all that Janino compiles at once: imports, then classes."""
        texts = [self._text(name) for name in (self.name, *self.others)]
        if len(texts) == 1:
            return texts[0]
        lines = [line for text in texts for line in text.splitlines()]
        imports = dict.fromkeys(line for line in lines if _is_import(line))
        return "\n".join([*imports, *(line for line in lines if not _is_import(line))])

    def _text(self, name: str) -> str:
        package, _, name = name.rpartition(".")
        folder = resources.files(package or self.package) / "java"
        return (folder / f"{name}.java").read_text(encoding="utf-8")


def _is_import(line: str) -> bool:
    return line.startswith("import ")


_FACTORY = JavaFile("connectors.spark", "ObjectFactory")


def instance(spark: SparkSession, java: JavaFile, *arguments: Any, beside: Any = None) -> Any:
    """An object of a Java class, made by its only constructor; the class is compiled once.

    The class can use Spark's own classes, and those of the class loader of the object `beside`. It is compiled once for
    all sessions, since py4j caches methods by class name and would call the method of another session's class.
    """
    jvm: Any = spark._jvm
    with _LOCK:
        factories: dict[str, Any] = jvm.__dict__.setdefault(_CLASSES, {})
        if _FACTORY.name not in factories:
            factories[_FACTORY.name] = _constructor(spark, _FACTORY, None)
        if java.name not in factories:
            constructor = java_names(spark).java.util.List.of(_constructor(spark, java, beside))
            factories[java.name] = factories[_FACTORY.name].newInstance(constructor.toArray())
    return factories[java.name].make(*arguments)


def _constructor(spark: SparkSession, java: JavaFile, beside: Any) -> Any:
    return _compiled(spark, java, beside).getConstructors()[0]


def _compiled(spark: SparkSession, java: JavaFile, beside: Any) -> Any:
    jvm = java_names(spark)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    spark_class = jvm.org.apache.spark.util.Utils.classForName("org.apache.spark.sql.Row", True, False)  # noqa: FBT003
    compiler.setParentClassLoader((spark_class if beside is None else beside.getClass()).getClassLoader())
    compiler.cook(java.source())
    return compiler.getClassLoader().loadClass(java.name)


_PYTHON_ERROR = re.compile(
    r"^(?:[a-zA-Z_][\w]*\.)*([A-Z]\w*(?:Error|Exception|Interrupt|Exit))\b(?::\s*(.*))?$", re.MULTILINE
)
_MISSING_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_CAUSES = 20
_CANCELLED = re.compile(r"\[SPARK_JOB_CANCELLED\] .*")


def error_kind(error: BaseException) -> str:
    """The kind of an error without its message, since messages of Spark and Python quote values.

    >>> error_kind(ZeroDivisionError("division of 'secret' by zero"))
    'ZeroDivisionError'
    """
    if isinstance(error, PruningError | MemoryError):
        return str(error) or type(error).__name__
    text = _full_text(error)
    worker = _python_error(text) if "Traceback (most recent call last)" in text else ""
    if worker:
        return worker
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return condition or _java_class(error) or type(error).__name__


# The classes of SQLSTATE are: cardinality violation, data exception, constraint violation, raised by the user.
_OF_DATA = re.compile(r"SQLSTATE: (21|22|23|P0)")


def is_data_error(error: BaseException) -> bool:
    """True where an expression of the query refused a value, as under ANSI, by Spark's SQLSTATE of the error."""
    return _OF_DATA.search(_full_text(error)) is not None


def failed_build(subject: str, error: Exception) -> Reason:
    """The reason of a build that failed."""
    if exceeds_result_size(error):
        code = ReasonCode.RESULT_TOO_LARGE
    else:
        code = ReasonCode.BUILD_RAISED if is_data_error(error) else ReasonCode.BUILD_FAILED
    return Reason(code, subject, error_kind(error))


def cancelled_job(error: BaseException) -> str | None:
    """Spark's message where somebody cancelled the job of an action, by its group, a tag, or Spark's UI; else None."""
    java = _java_root(error)
    found = _CANCELLED.search(str(error) if java is None else str(java.toString()))
    return None if found is None else found[0]


def exceeds_result_size(error: BaseException) -> bool:
    """True where the rows of a job were more than the driver takes: the query itself may bring none to the driver."""
    java = _java_root(error)
    return "spark.driver.maxResultSize" in (str(error) if java is None else str(java.toString()))


def java_message(error: Exception) -> str:
    """The root cause of an error, in the JVM or out of it, in one line without its stack."""
    java = _java_root(error)
    return str(error if java is None else java.toString()).splitlines()[0]


def _python_error(text: str) -> str:
    """The error of a Python worker, which is the last line of its traceback."""
    found = _PYTHON_ERROR.findall(text)
    if not found:
        return ""
    name, message = found[-1]
    missing = _MISSING_MODULE.search(message)
    if missing:
        remedy = "install this package where the executors run, or ship it with spark.addArtifacts"
        return f"the Python workers cannot import {missing[1]!r}: {remedy}"
    return f"{name} in a Python worker"


def _full_text(error: BaseException) -> str:
    java = _java_root(error)
    return f"{error}\n{java.toString()}" if java is not None else str(error)


def _java_class(error: BaseException) -> str:
    java = _java_root(error)
    return str(java.getClass().getSimpleName()) if java is not None else ""


def _java_root(error: BaseException) -> Any:
    if not isinstance(error, Py4JJavaError):
        return None
    java: Any = error.java_exception
    for _ in range(_CAUSES):
        cause = java.getCause()
        if cause is None:
            break
        java = cause
    return java
