# SPDX-License-Identifier: Apache-2.0
"""The search for mixed precision on a network of yours: how much of the best front it finds, and how fast it is.

    python benchmarks/precision_search.py MODEL --data X.npy [--labels Y.npy] [--board B] [--trials FILE] [--seeds N]

Two questions, by the number of blocks, each of which has 3 precisions. Each seed draws other halves of the samples, by
one of which settings are judged.

- If there are at most --most settings, all are tried. The search then gets their results from that table, for each set
  of limits: a row has the settings on the front of all, by which share of the hypervolume of all those are that 60
  evaluations of the search find, and the same of 60 settings that are drawn (the mean of 50 draws).
- Otherwise the search makes 200 evaluations. It is compared with the greedy choice: the blocks in the order of what
  each gains in int16 alone are raised to int16, one after the other, and in the order of what each gains in float to
  float. A row has the hypervolumes of both, as shares of that of both together, the points of the greedy front, and how
  many of these no point of the search equals or dominates.

Trials are kept in FILE, and a further call goes on from it. The last line has the seconds of a trial on this machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import ferrule
from ferrule.quantization import BoardBudget, SearchRequest
from ferrule.quantization.search.explore import Setting, explore
from ferrule.quantization.search.pareto import hypervolume
from ferrule.quantization.search.trial import LEVELS
from ferrule.quantization.search.trials import Trials, objectives
from ferrule.report.tradeoff import Points, front

LIMITS = ("ms=1", "flash=1", "flash=1,ms=1", "flash=1,ram=1,ms=1")
"""Sets of limits; the amounts do not matter to what is tried."""
SMALL, LARGE = 60, 200
"""Evaluations in a space that is tried as a whole, and in a larger one."""
_DRAWS = 50
Table = Mapping[Setting, Sequence[float] | None]
Evaluate = Callable[[Sequence[Setting]], list[Sequence[float] | None]]


def share(found: Points, everything: Points) -> float:
    """Return the share of the hypervolume of all points that some of them have, each objective from 0 to 1."""
    low, width = everything.min(axis=0), np.ptp(everything, axis=0)
    scaled = [(points - low) / np.where(width > 0, width, 1.0) for points in (found, everything)]
    limit = [1.1] * everything.shape[1]
    mine, whole = (hypervolume(points[front(points)], limit) for points in scaled)
    return mine / whole


def values_of(trials: Trials, budget: BoardBudget, settings: Sequence[Setting]) -> list[Sequence[float] | None]:
    """Return the objectives of settings, which are tried unless they have been."""
    found = dict(trials.of(settings))
    return [objectives(found[each], budget, trials.metric) for each in settings]


def looked_up(
    table: Mapping[Setting, Sequence[float] | None], asked: Sequence[Setting]
) -> list[Sequence[float] | None]:
    """Return the objectives of settings that are known."""
    return [table[each] for each in asked]


def whole_space(evaluate: Evaluate, places: int) -> str:
    """Return what the search finds of a space that is known as a whole."""
    levels = len(LEVELS)
    settings = [(0, *map(int, each)) for each in np.ndindex(*([levels] * places))]
    table = dict(zip(settings, evaluate(settings), strict=True))
    known = [values for values in table.values() if values is not None]
    everything, random = np.asarray(known), np.random.default_rng(0)
    found = explore([places], levels, partial(looked_up, table), SMALL, 0)
    drawn = [share(random.choice(everything, SMALL, replace=False), everything) for _ in range(_DRAWS)]
    best = len(np.unique(everything[front(everything)], axis=0))
    return f"{best:6}{share(np.asarray(list(found.values())), everything):8.4f}{np.mean(drawn):8.4f}"


def greedy(evaluate: Evaluate, places: int) -> list[Setting]:
    """Return the settings of the greedy choice: by what each block gains alone, first in int16, then in float."""
    lowest: Setting = (0,) * (places + 1)  # the first entry is the number of the model
    path: list[Setting] = [lowest]
    for level in range(1, len(LEVELS)):
        alone = [(*lowest[:place], level, *lowest[place + 1 :]) for place in range(1, places + 1)]
        losses = [np.inf if values is None else values[0] for values in evaluate(alone)]
        for start in (lowest, (0, *[level - 1] * places)):
            current = list(start)
            for place in np.argsort(losses, kind="stable"):
                current[1 + place] = level
                path.append(tuple(current))
    return list(dict.fromkeys(path))


def large_space(evaluate: Evaluate, places: int, seed: int) -> str:
    """Return the search beside the greedy choice."""
    theirs = np.asarray([values for values in evaluate(greedy(evaluate, places)) if values is not None])
    theirs = np.unique(theirs[front(theirs)], axis=0)
    mine = np.asarray(list(explore([places], len(LEVELS), evaluate, LARGE, seed).values()))
    both = np.concatenate([mine, theirs])
    missed = sum(not (mine <= point).all(axis=1).any() for point in theirs)
    return f"{share(mine, both):8.4f}{share(theirs, both):8.4f}{len(theirs):8}{missed:8}"


def main() -> None:
    """Print the table for a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--data", required=True)
    parser.add_argument("--labels")
    parser.add_argument("--metric")
    parser.add_argument("--board", default="nucleo_l4r5zi")
    parser.add_argument("--trials", type=Path, help="the file of trials")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limits", action="append", help="a set of limits, such as flash=1,ms=1")
    parser.add_argument("--most", type=int, default=729, help="the settings of a space that is tried as a whole")
    asked = parser.parse_args()
    request = SearchRequest(
        budget=BoardBudget.parse(LIMITS[0]),
        job=ferrule.Job(board=asked.board),
        labels=asked.labels,
        metric=asked.metric,
        jobs=asked.jobs,
        results=asked.trials,
    )
    spent_s, made, models = 0.0, 0, [(ferrule.load(asked.model), asked.data)]
    for seed in range(asked.seeds):
        with Trials.opened(models, replace(request, seed=seed)) as trials:
            (places,) = trials.places
            whole = len(LEVELS) ** places <= asked.most
            if not seed:
                print(
                    "limits              seed "
                    + (" front  search   drawn" if whole else " search  greedy  points  missed")
                )
            for limits in asked.limits or LIMITS:
                start, before = time.perf_counter(), trials.made
                values = partial(values_of, trials, BoardBudget.parse(limits))
                row = whole_space(values, places) if whole else large_space(values, places, seed)
                print(f"{limits:20}{seed:4} {row}", flush=True)
                if trials.made > before:
                    spent_s, made = spent_s + time.perf_counter() - start, made + trials.made - before
    if made:
        print(f"\n{made} trials, {spent_s / made:.2f} s each")


if __name__ == "__main__":
    main()
