"""Files of which metadata proves that they have a row which passes all filters above a scan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pruning.query.expressions import static_domains
from pruning.query.plan import Expression, Filter, Node, Relation, conjuncts_at
from pruning.scan.statistics import Containers
from pruning.values.domain import Domain
from pruning.values.types import INTEGER_BITS

# Comparisons whose domain has exactly the values that fulfil them; with strict ones only for some numbers.
_EXACT = frozenset({"EqualTo", "In", "GreaterThanOrEqual", "LessThanOrEqual"})
# Types of whose literals a domain may hold more than the value.
_WIDER = frozenset({"float", "double", "timestamp"})
_STRICT = frozenset({"GreaterThan", "LessThan"})


def passing_domains(root: Node, relation: Relation) -> Mapping[int, Domain] | Expression:
    """The values with which a row passes all filters above a scan, by column; a condition that has no such values.

    Only projections and filters may lie between the scan and `root`, or a join.
    """
    found: dict[int, Domain] = {}
    for node in root.walk():
        if not isinstance(node, Filter) or not node.subtree_start <= relation.id < node.id:
            continue
        for _, part in conjuncts_at(node.condition):
            domains = static_domains([part]) if _is_exact(part) else {}
            if not domains or not set(relation.output) >= domains.keys() == part.columns:
                return part
            for column, domain in domains.items():
                found[column] = domain.intersect(found[column]) if column in found else domain
    return found


def _is_exact(part: Expression) -> bool:
    """True where the domain of a condition has no value that does not fulfil it."""
    if part.kind == "IsNotNull":
        return True
    literals = [each for each in part.children if each.kind == "Literal"]
    if part.kind not in _EXACT | _STRICT or not literals or len(literals) < len(part.children) - 1:
        return False
    type_ = literals[0].type
    if part.kind in _EXACT:
        return type_ not in _WIDER
    # Beside the ends of a type there is no next number.
    bits = INTEGER_BITS.get(type_)
    return bits is not None and abs(int(literals[0].text)) < (1 << (bits - 1)) - 1


def first_sure(files: Containers, wanted: Mapping[str, Domain], among: Iterable[int]) -> int | None:
    """The first of the files at `among` that has rows, all of them with values in `wanted`; None if there is none."""
    for at in among:
        deleted = 0 if files.deleted is None else int(files.deleted[at])
        if int(files.rows[at]) <= max(0, deleted):
            continue
        known = {name: files.columns[name].domain(at, int(files.rows[at])) for name in wanted if name in files.columns}
        if known.keys() == wanted.keys() and all(wanted[name].contains_all(each) for name, each in known.items()):
            return at
    return None
