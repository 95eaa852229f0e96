"""A Spark session for one benchmark, with the tables of TPC-DS as Delta tables clustered by date."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import SparkSession

from connectors.cli.command import default_folder
from connectors.spark.session import spark_session
from sample_data.layout import write_delta
from sample_data.tpcds import TpcdsFiles
from sample_data.tpcds_queries import spark_tables


@contextmanager
def delta_session(
    part: str, scale: float, sources: TpcdsFiles, conf: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """A session for one part of the benchmarks, with views of the tables made from `sources`; stopped at the end."""
    with tempfile.TemporaryDirectory() as logs:
        spark = spark_session(f"scanprune benchmark: {part}", conf=conf, log=Path(logs, "spark.log"))
        try:
            folders = write_delta(spark, sources, default_folder() / f"delta-sf{scale:g}")
            with spark_tables(spark, folders):
                yield spark
        finally:
            spark.stop()
