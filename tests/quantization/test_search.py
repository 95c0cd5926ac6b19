# SPDX-License-Identifier: Apache-2.0
"""The search over settings, on problems whose fronts are known."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from gate import some_of

from ferrule.quantization.search.explore import Evaluate, Setting, explore
from ferrule.quantization.search.pareto import hypervolume, margins
from ferrule.quantization.search.surrogate import Surrogate
from ferrule.report.tradeoff import Points, front

LEVELS = 3


class Problem:
    """Layers with random costs, and losses that do not quite add up, as those of a network."""

    def __init__(self, places: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.places = places
        self._noise = random.lognormal(0, 1.5, places)[:, None] * np.array([1.0, 2e-3, 0.0])
        self._time = random.lognormal(0, 1, places)[:, None] * np.array([1.0, 1.6, 4.0])
        self._size = random.lognormal(0, 1, places)[:, None] * np.array([1.0, 1.05, 4.0])
        self._pairs = random.lognormal(-2, 1, places - 1)
        self._joint = random.uniform(-0.3, 0.3, (places, places))
        self.calls = 0

    def objectives(self, setting: Setting) -> tuple[float, float, float]:
        self.calls += 1
        index = np.arange(self.places), np.asarray(setting)
        noise = self._noise[index]
        total = noise.sum() + np.sqrt(noise) @ self._joint @ np.sqrt(noise)
        conversions = sum(
            cost for cost, (one, two) in zip(self._pairs, itertools.pairwise(setting), strict=True) if one != two
        )
        return (
            float(np.log10(max(total, 0) + 1e-3)),
            float(self._time[index].sum() + conversions),
            float(self._size[index].sum()),
        )

    def evaluate(self, settings: Sequence[Setting]) -> list[Sequence[float] | None]:
        return [self.objectives(setting[1:]) for setting in settings]

    def by_sensitivity(self) -> list[Setting]:
        """Return the settings of the greedy choice: of one level, of a second one, and of the second above the first.

        From the least precision on, the layer is next that gains most alone.
        """
        zero = (0,) * self.places
        start, visited = self.objectives(zero)[0], [zero]
        for level, below in ((1, 0), (2, 0), (2, 1)):
            setting, gains = [below] * self.places, []
            for place in range(self.places):
                changed = (*zero[:place], level, *zero[place + 1 :])
                gains.append(start - self.objectives(changed)[0])
            for place in sorted(range(self.places), key=lambda place: -gains[place]):
                setting[place] = level
                visited.append(tuple(setting))
        return list(dict.fromkeys(visited))


def reference(points: Points) -> list[float]:
    return [float(each) for each in points.max(axis=0) + 0.1 * np.ptp(points, axis=0)]


def test_fronts() -> None:
    points = np.array([[1.0, 4.0], [2.0, 2.0], [2.0, 3.0], [4.0, 1.0], [1.0, 4.0], [5.0, 5.0]])
    assert front(points).tolist() == [True, True, False, True, True, False]


def test_hypervolumes() -> None:
    assert hypervolume(np.array([[1.0]]), [3.0]) == 2.0
    assert hypervolume(np.array([[1.0, 2.0], [2.0, 1.0]]), [3.0, 3.0]) == 3.0
    assert hypervolume(np.array([[3.0, 0.0], [0.0, 4.0]]), [3.0, 3.0]) == 0.0
    random = np.random.default_rng(0).random((12, 3))
    grid = np.random.default_rng(1).random((200_000, 3))
    covered = np.zeros(len(grid), bool)
    for point in random:
        covered |= (grid >= point).all(axis=1)
    assert hypervolume(random, [1.0, 1.0, 1.0]) == pytest.approx(covered.mean(), abs=0.005)


def test_margins_tell_improvements() -> None:
    known = np.array([[1.0, 4.0], [4.0, 1.0]])
    points = np.array([[2.0, 2.0], [1.0, 4.0], [5.0, 5.0], [0.0, 0.0]])
    assert margins(points, known).tolist() == [2.0, 0.0, -1.0, 4.0]


def test_a_surrogate_finds_additive_costs() -> None:
    problem, random = Problem(6, 3), np.random.default_rng(0)
    settings = [tuple(int(each) for each in random.integers(LEVELS, size=6)) for _ in range(60)]
    values = np.array([problem.objectives(setting)[1:] for setting in settings])
    model = Surrogate(settings[:40], values[:40], LEVELS)
    assert np.allclose(model.predict(settings[40:]), values[40:], rtol=0.01)


def test_each_setting_is_tried_once_and_in_the_same_order() -> None:
    def recorded(problem: Problem, into: list[Setting]) -> Evaluate:
        def evaluate(settings: Sequence[Setting]) -> list[Sequence[float] | None]:
            into.extend(settings)
            return problem.evaluate(settings)

        return evaluate

    runs: list[list[Setting]] = [[], []]
    for run in runs:
        explore([8], LEVELS, recorded(Problem(8, 1), run), 50, seed=5)
    assert runs[0] == runs[1]
    assert len(runs[0]) == len(set(runs[0])) == 50


def test_a_small_space_is_tried_in_whole() -> None:
    problem = Problem(3, 0)
    assert len(explore([3], LEVELS, problem.evaluate, 27, seed=0)) == problem.calls == 27


def test_settings_that_cannot_be_tried_count_but_are_left_out() -> None:
    problem = Problem(6, 2)

    def evaluate(settings: Sequence[Setting]) -> list[Sequence[float] | None]:
        return [None if setting[1] == 2 else problem.objectives(setting[1:]) for setting in settings]

    found = explore([6], LEVELS, evaluate, 60, seed=0)
    assert found
    assert all(setting[1] != 2 for setting in found)
    assert explore([6], LEVELS, lambda settings: [None] * len(settings), 40, seed=0) == {}


def test_five_layers_in_sixty_trials() -> None:
    """All 243 settings are known, with three objectives, fronts of 23 to 41 points, and noise that does not add up."""
    shares = []
    for seed in range(8):
        problem = Problem(5, seed)
        every = np.asarray([problem.objectives(setting) for setting in itertools.product(range(LEVELS), repeat=5)])
        found = np.asarray(list(explore([5], LEVELS, problem.evaluate, 60, seed=0).values()))
        limit = reference(every)
        shares.append(hypervolume(found, limit) / hypervolume(every, limit))
    assert min(shares) >= 0.95
    assert np.mean(shares) >= 0.98


@pytest.mark.parametrize("seed", some_of([0, 2], [0]))
def test_twenty_layers_reach_the_greedy_choice(seed: int) -> None:
    """Each point of the front of a choice by sensitivity is dominated by one that was found, or as good as one."""
    problem = Problem(20, seed)
    greedy = np.asarray([problem.objectives(setting) for setting in problem.by_sensitivity()])
    found = np.asarray(list(explore([20], LEVELS, problem.evaluate, 200, seed=0).values()))
    assert len(found) == 200
    for point in greedy:
        assert (found <= point).all(axis=1).any()
    limit = reference(np.concatenate([greedy, found]))
    assert hypervolume(found, limit) > 1.02 * hypervolume(greedy, limit)


def test_few_evaluations_follow_the_greedy_choice_at_distances() -> None:
    """Of 20 layers, 43 evaluations show the sensitivities, and 17 are left for 55 more settings of the choice."""
    problem = Problem(20, 0)
    found = [setting[1:] for setting in explore([20], LEVELS, problem.evaluate, 60, seed=0)]
    new = [setting for setting in problem.by_sensitivity() if setting not in found[:43]]
    places = [index for index, setting in enumerate(new) if setting in found]
    assert len(new) == 55
    assert len(places) == 17
    assert all(2 <= two - one <= 4 for one, two in itertools.pairwise(places))


def test_sensitivities_are_unknown_of_what_cannot_be_tried() -> None:
    """A layer that one level cannot have comes last in that level's order."""
    problem = Problem(8, 4)

    def evaluate(settings: Sequence[Setting]) -> list[Sequence[float] | None]:
        return [None if setting[1] == 1 else problem.objectives(setting[1:]) for setting in settings]

    found = explore([8], LEVELS, evaluate, 80, seed=0)
    behind = [setting[1:] for setting in found][17:45]  # 2 of 3 uniform settings, and 15 of 16 with one place
    raised = {sum(setting) for setting in behind if max(setting) == 1}
    assert raised >= {2, 3, 4, 5, 6, 7}  # an earlier place of it would have left none to try


def test_several_models_have_one_front() -> None:
    """Of two models with other numbers of layers, one is cheaper and loses more: the front has settings of both."""
    problems = [Problem(4, 0), Problem(5, 1)]
    offsets = np.array([[0.0, 0.0, 0.0], [-1.5, 30.0, 10.0]])

    def evaluate(settings: Sequence[Setting]) -> list[Sequence[float] | None]:
        return [tuple(problems[each[0]].objectives(each[1:]) + offsets[each[0]]) for each in settings]

    everything = explore([4, 5], LEVELS, evaluate, 3**4 + 3**5, seed=0)
    assert len(everything) == 3**4 + 3**5
    every = np.asarray(list(everything.values()))
    best = [setting for setting, kept in zip(everything, front(every), strict=True) if kept]
    assert {setting[0] for setting in best} == {0, 1}
    found = explore([4, 5], LEVELS, evaluate, 80, seed=0)
    assert len(found) == 80
    limit = reference(every)
    assert hypervolume(np.asarray(list(found.values())), limit) >= 0.97 * hypervolume(every, limit)
