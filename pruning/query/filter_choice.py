"""`FilterChoices`: the filters that are worth their builds, chosen together, by the seconds that they save and cost.

A build is paid once, however many scans its keys filter. The build with the greatest gain is taken first; what its keys
leave of each scan is what further filters can still save. A filter is used where its gain is positive, and where what
it loses if its keys save least is little: beside that gain (`risked_gain`), or, together with all others, for a query
(`risked_seconds`, `risked_share`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import hypot

from pruning.cost.estimate import ZERO, Estimate
from pruning.query.benefit import Benefit, Benefits, Effect, Remaining
from pruning.query.build_selection import BuildSelection
from pruning.query.cascades import effect_with_later
from pruning.query.requests import Steps, with_answers
from pruning.query.runtime_filter import FilterId, RuntimeFilter
from pruning.reasons import Reason, ReasonCode

# The filters that the keys of one run of a build side would be.
_Build = tuple[RuntimeFilter, ...]


@dataclass(frozen=True, slots=True)
class _Offer:
    """The benefit of one build after `taken` builds were chosen.

    `effects` are those of its filters, None where the keys would save less than planning the scan anew takes.
    """

    build: _Build
    benefit: Benefit
    effects: tuple[Effect | None, ...]
    brings_rows: bool
    must_fit: bool
    on_driver: bool
    taken: int = 0

    def filters(self, *, used: bool) -> Iterator[RuntimeFilter]:
        """The filters that are worth planning their scans, or the others."""
        for each, effect in zip(self.build, self.effects, strict=True):
            if (effect is not None) is used:
                yield replace(
                    each,
                    benefit=self.benefit,
                    brings_rows=self.brings_rows,
                    must_fit=self.must_fit,
                    on_driver=self.on_driver,
                )


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """The chosen filters, each with its benefit, and the best that was found of all others.

    `risky` are the ids of those that are expected to gain something, and may lose too much.
    """

    chosen: tuple[RuntimeFilter, ...]
    others: tuple[RuntimeFilter, ...]
    risky: frozenset[FilterId] = frozenset()

    def why_not(self, refused: Iterable[RuntimeFilter]) -> Reason:
        """The reason against the best of some filters that were not chosen."""
        best = max(refused, key=lambda each: each.gain)
        code = ReasonCode.RISKY if best.id in self.risky else ReasonCode.NOT_WORTH
        return Reason(code, best.probe.name, "" if best.benefit is None else str(best.benefit))


@dataclass(slots=True)
class _Choice:
    """The state of the choice: what the filters chosen so far leave of each scan, by `Relation.id`.

    `risked`: seconds that all builds together may lose; `at_risk`: those that the chosen ones may lose, which add up
    like errors that do not depend on each other. Builds that are likely to gain far more than they may lose do not
    count.
    """

    selection: BuildSelection
    risked: float
    at_risk: float = 0.0
    left: dict[int, Remaining] = field(default_factory=dict)
    taken: list[_Offer] = field(default_factory=list)

    def offer(self, build: _Build) -> _Offer:
        """The benefit of a build beside the filters that are chosen; each key has to be worth its summary."""
        benefits, node = self.selection.benefits, build[0].build_side.node
        left, saved, little = dict(self.left), ZERO, ZERO
        effects, planned, keys = dict[int, Effect](), set[tuple[int, int]](), 0
        for filters in self._by_key(build):
            found, unused = self._key_effects(filters, left, planned)
            own = sum((each.saved for each in found.values()), ZERO)
            columns = {_column(filters[at]) for at in found}
            own = own + Estimate.exact(-benefits.planning * len(columns - planned))
            # Both ends of a range come from one build, and plan a scan together.
            if own.expected > (benefits.key(node) if keys else 0.0) or columns & planned:
                left |= {filters[at].probe.relation.id: each.left for at, each in found.items()}
                saved, keys = saved + own, keys + 1
                effects |= found
                planned |= columns
            else:
                unused = unused + own
            little = little + unused
        saved, keys = saved if effects else little, max(1, keys)
        paid, run = benefits.paid(node, keys), benefits.run(node, keys)
        # Without the rows of the build in its place, the query would run the build's plan once more.
        spared = benefits.fits(node) and saved.expected <= paid.expected + benefits.cost.tree(node)
        # Rows that another run may not give are joined, however many they are.
        must_fit = spared and not build[0].needs_rows
        used = tuple(map(effects.get, range(len(build))))
        benefit = Benefit(paid, saved, run, benefits.scans(node))
        brings_rows, on_driver = benefits.may_fit(node), benefits.is_on_driver(node)
        return _Offer(build, benefit, used, brings_rows, must_fit, on_driver, len(self.taken))

    def _by_key(self, build: _Build) -> list[dict[int, RuntimeFilter]]:
        """The filters of each key of a build by their place among all, those of the key that alone saves most first."""
        found: dict[tuple[int, str], dict[int, RuntimeFilter]] = {}
        for at, each in enumerate(build):
            found.setdefault(each.build_side.id, {})[at] = each
        return sorted(found.values(), key=self._saved_alone, reverse=True) if len(found) > 1 else [*found.values()]

    def _saved_alone(self, filters: Mapping[int, RuntimeFilter]) -> float:
        effect = self.selection.benefits.effect
        return sum(
            effect(each.build_side, each.probe, self.left.get(each.probe.relation.id)).saved.expected
            for each in filters.values()
        )

    def _key_effects(
        self,
        filters: Mapping[int, RuntimeFilter],
        before: Mapping[int, Remaining],
        planned: Collection[tuple[int, int]],
    ) -> tuple[dict[int, Effect], Estimate]:
        """The effects of filters of one key that are worth planning their scans, and the seconds that others save."""
        benefits, left, columns = self.selection.benefits, dict(before), set(planned)
        found, little = dict[int, Effect](), ZERO
        for at, each in filters.items():
            effect = effect_with_later(each, self.selection, left)
            if effect.saved.expected > benefits.planning or _column(each) in columns:
                found[at], left[each.probe.relation.id] = effect, effect.left
                columns.add(_column(each))
            else:
                little = little + effect.saved
        return found, little

    def made(self, offers: Iterable[_Offer]) -> FilterChoice:
        """The choice among first offers; what is chosen makes others smaller, so the best is looked at again."""
        waiting, risky, chosen = list(offers), list[_Offer](), list[RuntimeFilter]()
        while waiting:
            waiting.sort(key=_order)
            best = self._now(waiting.pop())
            if waiting and best.benefit.gain < waiting[-1].benefit.gain:
                waiting.append(best)
            elif best.benefit.gain <= 0:
                waiting.append(best)
                break
            elif (at_risk := self._at_risk_with(best.benefit)) > self.risked:
                risky.append(best)
            else:
                self.at_risk = at_risk
                chosen += best.filters(used=True)
                self._take(best)
        refused = [each for offer in (*waiting, *risky) for used in (True, False) for each in offer.filters(used=used)]
        refused += [each for offer in self.taken for each in offer.filters(used=False)]
        too_risky = frozenset(each.id for offer in risky for each in offer.filters(used=True))
        return FilterChoice(tuple(chosen), tuple(refused), too_risky)

    def _now(self, offer: _Offer) -> _Offer:
        """The offer at this moment: the same until a further build is taken."""
        return offer if offer.taken == len(self.taken) else self.offer(offer.build)

    def _take(self, offer: _Offer) -> None:
        self.taken.append(offer)
        for each, effect in zip(offer.build, offer.effects, strict=True):
            if effect is not None:
                self.left[each.probe.relation.id] = effect.left

    def _at_risk_with(self, benefit: Benefit) -> float:
        """The seconds at risk with one more build."""
        if self.selection.benefits.is_bearable(benefit.risk, benefit.gain, self.selection.root):
            return self.at_risk
        return hypot(benefit.risk, self.at_risk)


def _column(runtime_filter: RuntimeFilter) -> tuple[int, int]:
    return runtime_filter.probe.relation.id, runtime_filter.probe.column


def _order(offer: _Offer) -> tuple[float, tuple[int, str]]:
    return offer.benefit.gain, offer.build[0].build_side.id


@dataclass(slots=True)
class FilterChoices:
    """Choices among the filters of one moment: what a build offers beside no other is computed once for all of them."""

    selection: BuildSelection
    _offers: dict[int, _Offer] = field(default_factory=dict)

    def among(self, candidates: Iterable[RuntimeFilter]) -> FilterChoice:
        """The choice among sound filters; all of them with the option `always`, without a look at their benefit."""
        wanted, selection = tuple(candidates), self.selection
        if selection.options.always:
            return FilterChoice(tuple(_unweighed(each, selection.benefits) for each in wanted), ())
        if not wanted:
            return FilterChoice((), ())
        offers = [self._first_offer(each) for each in _by_build(wanted)]
        return _Choice(selection, selection.benefits.risked(selection.root)).made(offers)

    def look_up(self, candidates: Iterable[RuntimeFilter]) -> Steps[None]:
        """Asks for what a choice looks up, piece by piece: a rule starts again after each answer."""
        builds, benefits = _by_build(candidates), self.selection.benefits
        if self.selection.options.always or not builds:
            return
        for build in builds:
            for each in build:
                yield from with_answers(partial(effect_with_later, each, self.selection, {}))
            yield from with_answers(partial(benefits.paid, build[0].build_side.node))
            yield from with_answers(partial(self._first_offer, build))
        yield from with_answers(partial(benefits.risked, self.selection.root))

    def _first_offer(self, build: _Build) -> _Offer:
        at = build[0].build_side.node.id
        if at not in self._offers or self._offers[at].build != build:
            self._offers[at] = _Choice(self.selection, 0.0).offer(build)
        return self._offers[at]


def _unweighed(runtime_filter: RuntimeFilter, benefits: Benefits) -> RuntimeFilter:
    node = runtime_filter.build_side.node
    brings_rows = runtime_filter.needs_rows or benefits.may_fit(node)
    return replace(runtime_filter, brings_rows=brings_rows, on_driver=benefits.is_on_driver(node))


def _by_build(filters: Iterable[RuntimeFilter]) -> list[_Build]:
    found: dict[int, list[RuntimeFilter]] = {}
    for each in filters:
        found.setdefault(each.build_side.node.id, []).append(each)
    return [tuple(each) for each in found.values()]
