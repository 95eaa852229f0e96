"""Options under which builds over the small tables of tests pay: reading costs as usual, all else nothing."""

from __future__ import annotations

from dataclasses import replace

from pruning.cost.rates import CostRates
from pruning.options import PruningOptions

# Rates of their own, so that the decisions of tests do not depend on those that fit a workload.
NO_FIXED_COSTS = replace(
    CostRates(),
    byte=0.6,
    decoded_byte=3.0,
    decoded_value=0.0,
    spark_test=12.0,
    joined_row=30.0,
    hashed_row=150.0,
    exchanged_row=500.0,
    sorted_row=200.0,
    grouped_row=60.0,
    row=5.0,
    query=0.0,
    build_job=0.0,
    driver_build=0.0,
    planned_scan=0.0,
    kept_row=0.0,
    driver_row=0.0,
)
# A busy machine may take longer than the default for a build on the driver.
PATIENT = PruningOptions().with_limits(driver_scan_seconds=60)
FREE_BUILDS = PATIENT.with_limits(costs=NO_FIXED_COSTS)
# Scans of a few rows are not worth planning by keys; larger ones are.
PLANNED_SCANS = FREE_BUILDS.with_limits(costs=replace(NO_FIXED_COSTS, planned_scan=1000.0))
# No build pays, while the scans are as worth reading less of as ever.
COSTLY_BUILDS = PATIENT.with_limits(costs=replace(NO_FIXED_COSTS, build_job=1e15, kept_row=1e15, driver_row=1e15))
ALWAYS = replace(PATIENT, always=True)
# Builds are free, and scans skip files alone: no test of single rows pays.
FILES_ONLY = FREE_BUILDS.with_limits(
    costs=replace(NO_FIXED_COSTS, spark_test=1e15, spark_lookup=1e15, spark_compared=1e15)
)
