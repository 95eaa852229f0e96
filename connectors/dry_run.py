"""What `prune` would try, from metadata alone."""

from __future__ import annotations

from pyspark.sql import DataFrame

from connectors.plan_reader import SparkPlan, check_has_plan
from connectors.plan_tables import leaf_sizes
from pruning.filter_plan import FilterPlan, Sizes
from pruning.join_graph import JoinGraph
from pruning.options import PruningOptions
from pruning.query_explanation import QueryExplanation


def dry_run(df: DataFrame, options: PruningOptions) -> QueryExplanation:
    """What `prune` would try: no build runs and no data is read."""
    check_has_plan(df)
    plan = SparkPlan.of(df)
    graph = JoinGraph.of(plan.root)
    sizes, files = leaf_sizes({relation.at: plan.node(relation) for relation in graph.relations})
    filters = FilterPlan.before_builds(graph, Sizes(sizes, files, ()), options)
    return QueryExplanation.of(filters, sizes, (), (*graph.refusals, *filters.refusals), ran_builds=False)
