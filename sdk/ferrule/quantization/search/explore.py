# SPDX-License-Identifier: Apache-2.0
"""Chooses the settings that are tried: one after the other by what the earlier ones have shown.

A space has settings of one or several networks, among which the search also chooses. First come the uniform settings of
each, and those that differ from the first of them in one place. They show how sensitive the first objective, the loss,
is to each place, and next come the settings that a greedy choice by sensitivity visits, so that its front is reached
whatever follows; of more than the evaluations allow, some that are spread over all of them. Then, in each round, linear
models of the objectives (`surrogate`) are fitted to what was tried of each network; settings near its front and near
the best of random weightings are collected, and those are tried next that are expected to improve most on the front of
all networks. All is determined by the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ferrule.operators.arithmetic.blas import one_thread
from ferrule.quantization.search.pareto import gain, margins
from ferrule.quantization.search.surrogate import Surrogate
from ferrule.report.tradeoff import Points, front

Setting = tuple[int, ...]
"""The number of the model, and the number of the level of each of its places."""
Places = tuple[int, ...]
"""A setting without the number of its model."""
Found = Mapping[Setting, Sequence[float]]
"""The objectives of settings that were tried."""
Evaluate = Callable[[Sequence[Setting]], Sequence[Sequence[float] | None]]
"""Returns the objectives of settings, each to be small; None for one that cannot be tried."""
_BATCH = 2
_WHOLE = 4096
"""Of a space with at most so many settings, each is guessed at; of a larger one, those near the best."""
_COMPARED = 12
"""The settings of which the gain in hypervolume is computed."""
_REFERENCE = 1.1
"""The reference of hypervolumes, where 0 is the least and 1 the largest value of an objective so far."""
_WEIGHTINGS = 24
"""Random weightings of the objectives in each round."""
_STEPS = 3
"""Passes over all places in which the best level is chosen by a weighting."""


def explore(
    places: Sequence[int], levels: int, evaluate: Evaluate, most: int, seed: int
) -> dict[Setting, tuple[float, ...]]:
    """Return the objectives of the settings that were tried, at most so many of them, in the order of their trials.

    `places` is the number of places of each model's settings, each of which has one of `levels`. If there are no more
    settings than `most`, all are tried.
    """
    found: dict[Setting, tuple[float, ...]] = {}
    tried: set[Setting] = set()
    random = np.random.default_rng(seed)

    def attempt(settings: Sequence[Setting]) -> None:
        fresh = [setting for setting in dict.fromkeys(settings) if setting not in tried][: most - len(tried)]
        tried.update(fresh)
        for setting, values in zip(fresh, evaluate(fresh) if fresh else (), strict=True):
            if values is not None:
                found[setting] = tuple(values)

    if sum(levels**count for count in places) <= most:
        attempt([(model, *each) for model, count in enumerate(places) for each in _every(count, levels)])
        return found
    attempt(list(_first(places, levels)))
    visited = dict.fromkeys(
        each for model in range(len(places)) for each in _greedy(found, model, places[model], levels)
    )
    attempt(_spread([each for each in visited if each not in tried]))
    while len(tried) < most:
        count = min(_BATCH, most - len(tried))
        with one_thread():
            proposed = _proposed(found, tried, places, levels, random) if found else []
        chosen = proposed[:count] or list(_random(tried, places, levels, random, count))
        if not chosen:
            break
        attempt(chosen)
    return found


def _every(places: int, levels: int) -> Iterator[Places]:
    return (tuple(map(int, each)) for each in np.ndindex(*([levels] * places)))


def _first(places: Sequence[int], levels: int) -> Iterator[Setting]:
    """Yield the uniform settings of each model, and those that differ from the first one in one place."""
    for level in range(levels):
        yield from ((model, *[level] * count) for model, count in enumerate(places))
    for level in range(1, levels):
        for model, count in enumerate(places):
            yield from ((model, *(level if index == place else 0 for index in range(count))) for place in range(count))


def _greedy(found: Found, model: int, places: int, levels: int) -> Iterator[Setting]:
    """Yield the settings of the greedy choice of a model, by the losses of those that differ in one place.

    For each level, the places are raised to it one after the other, that first whose loss alone is the least: from the
    lowest level on, and from the level before it.
    """
    for level in range(1, levels):
        alone = [(model, *(level if index == place else 0 for index in range(places))) for place in range(places)]
        losses = [found[each][0] if each in found else np.inf for each in alone]
        for start in dict.fromkeys((0, level - 1)):
            current = [start] * places
            for place in np.argsort(losses, kind="stable"):
                current[place] = level
                yield (model, *current)


def _spread(settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings in an order of which each beginning is spread over all of them.

    A search that goes on with more evaluations has the same beginning. The order is that of the bits of their places,
    read backwards (van der Corput's sequence).
    """
    bits = max(1, (len(settings) - 1).bit_length())
    return [settings[place] for place in sorted(range(len(settings)), key=lambda place: f"{place:0{bits}b}"[::-1])]


def _random(
    tried: set[Setting], places: Sequence[int], levels: int, random: np.random.Generator, count: int
) -> Iterator[Setting]:
    """Yield settings that were not tried, as far as a few draws find any."""
    seen = set(tried)
    for _ in range(100 * count):
        model = int(random.integers(len(places)))
        setting = (model, *map(int, random.integers(levels, size=places[model])))
        if setting not in seen:
            seen.add(setting)
            yield setting
            if len(seen) == len(tried) + count:
                return


def _proposed(
    found: dict[Setting, tuple[float, ...]],
    tried: set[Setting],
    places: Sequence[int],
    levels: int,
    random: np.random.Generator,
) -> list[Setting]:
    """Return settings that were not tried, those first that are expected to improve most on the front."""
    raw = np.asarray(list(found.values()), np.float64)
    low, high = raw.min(axis=0), raw.max(axis=0)
    points = (raw - low) / np.where(high > low, high - low, 1.0)
    candidates: list[Setting] = []
    values = []
    for model in range(len(places)):
        rows = [index for index, setting in enumerate(found) if setting[0] == model]
        if not rows:
            continue
        known = [setting[1:] for setting in found if setting[0] == model]
        surrogate = Surrogate(known, points[rows], levels)
        pool = [each for each in _pool(known, points[rows], surrogate, levels, random) if (model, *each) not in tried]
        if pool:
            candidates += [(model, *each) for each in pool]
            values.append(surrogate.predict(pool))
    if not candidates:
        return []
    return list(_most_gaining(candidates, np.concatenate(values), points[front(points)]))


def _pool(
    settings: Sequence[Places], points: Points, surrogate: Surrogate, levels: int, random: np.random.Generator
) -> Iterable[Places]:
    """Return settings of one model that may be good, of which some were tried; `points` are those of `settings`."""
    places = len(settings[0])
    if levels**places <= _WHOLE:
        return _every(places, levels)
    best = [setting for setting, kept in zip(settings, front(points), strict=True) if kept]
    pool = dict.fromkeys(near for setting in best for near in _neighbours(setting, levels))
    weights = np.concatenate([np.eye(points.shape[1]), random.dirichlet(np.ones(points.shape[1]), _WEIGHTINGS)])
    starts = [best[int(index)] for index in random.integers(len(best), size=len(weights))]
    return pool | dict.fromkeys(_descents(starts, weights, levels, surrogate.predict))


def _most_gaining(candidates: list[Setting], values: Points, known: Points) -> Iterator[Setting]:
    """Yield the candidates that are expected to add most to the front's hypervolume, each beside those before it."""
    reference = [_REFERENCE] * values.shape[1]
    for _ in range(min(_BATCH, len(candidates))):
        order = np.argsort(-margins(values, known), kind="stable")[:_COMPARED]
        gains = [gain(values[index], known, reference) for index in order]
        index = int(order[int(np.argmax(gains))])  # the first of equal ones, whose margin is the largest
        yield candidates[index]
        known = np.concatenate([known, values[index : index + 1]])
        values[index] = np.inf


def _neighbours(setting: Places, levels: int) -> Iterator[Places]:
    """Yield the settings that differ in one place."""
    for place, own in enumerate(setting):
        for level in range(levels):
            if level != own:
                yield (*setting[:place], level, *setting[place + 1 :])


def _descents(
    starts: Sequence[Places], weights: Points, levels: int, expected: Callable[[Sequence[Places]], Points]
) -> Iterator[Places]:
    """Yield the settings on the ways from each start to a local minimum of its weighting, place by place."""
    current = list(starts)
    for _ in range(_STEPS):
        for place in range(len(starts[0])):
            options = [(*each[:place], level, *each[place + 1 :]) for each in current for level in range(levels)]
            values = expected(options).reshape(len(current), levels, -1)
            chosen = np.argmin(np.einsum("slk,sk->sl", values, weights), axis=1)
            current = [options[index * levels + int(level)] for index, level in enumerate(chosen)]
        yield from current
