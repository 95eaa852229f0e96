"""Options under which builds over the small tables of tests pay: reading costs as usual, all else nothing."""

from __future__ import annotations

from dataclasses import replace

from pruning.cost.rates import CostRates
from pruning.options import PruningOptions

NO_FIXED_COSTS = replace(CostRates(), build_job=0.0, driver_build=0.0, planned_scan=0.0, kept_row=0.0)
FREE_BUILDS = PruningOptions().with_limits(costs=NO_FIXED_COSTS)
# No build pays, while the scans are as worth reading less of as ever.
COSTLY_BUILDS = PruningOptions().with_limits(costs=replace(NO_FIXED_COSTS, build_job=1e15, kept_row=1e15))
ALWAYS = PruningOptions(always=True)
