# SPDX-License-Identifier: Apache-2.0
"""The search for the best precision of layers within a budget of a board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from float_networks import convolutions, random, samples
from needs import require_module

import ferrule as package
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.sweep.workers import Attempt, WorkerLostError
from ferrule.quantization import BoardBudget, SearchRequest, search, search_models
from ferrule.quantization.search import search as searching
from ferrule.quantization.search import trials as trying
from ferrule.quantization.search.trial import LEVELS, Subject, blocks
from ferrule.report.search_document import TrialPart

BOARD = "mps2-an386"


@pytest.fixture(autouse=True)
def quantizer() -> None:
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")


@pytest.fixture
def data(tmp_path: Path) -> tuple[str, str]:
    """Samples of `convolutions`, with the classes that it gives them, some of which are wrong."""
    network = convolutions()
    path = samples(network, tmp_path, 24)
    labels = np.array([int(np.argmax(network.run([each[None]])[0])) for each in np.load(path)])
    labels[::6] = (labels[::6] + 1) % 4
    np.save(tmp_path / "labels.npy", labels)
    return str(path), str(tmp_path / "labels.npy")


def request(budget: str, **others: Any) -> SearchRequest:  # noqa: ANN401 fields of any type
    asked: dict[str, Any] = {"evaluations": 10, **others}
    return SearchRequest(budget=BoardBudget.parse(budget), job=package.Job(board=BOARD), **asked)


def test_budgets_as_text() -> None:
    assert BoardBudget.parse("flash=256K,ram=64KiB,ms=50.5").limits == {"flash": 262144, "ram": 65536, "ms": 50.5}
    assert BoardBudget.parse("ram=1M").limits == {"ram": 1 << 20}
    for text in ("", "flash", "flash=", "rom=3", "ms=5K", "flash=1Q", "flash=-1"):
        with pytest.raises(FerruleError, match=r"budget has '.*', expected flash=BYTES, ram=BYTES or ms=NUMBER"):
            BoardBudget.parse(text)
    with pytest.raises(FerruleError, match="budget names ram twice"):
        BoardBudget.parse("ram=1,ram=2")


def test_what_a_budget_allows() -> None:
    budget = BoardBudget.parse("flash=100,ms=5")
    assert budget.exceeded({"flash": 100, "ram": 1e9, "ms": 5.0}) == ()
    assert budget.exceeded({"flash": 101, "ms": 5.1}) == ("flash", "ms")
    assert budget.exceeded({"flash": 1, "ms": None}) == ("ms",)


def test_blocks_begin_at_sums_of_products() -> None:
    assert blocks(convolutions()) == (("first", "leaky"), ("second", "mean"), ("dense", "y"))


def test_the_best_within_the_budget_is_built_and_proved(data: tuple[str, str]) -> None:
    found = search(convolutions(), data[0], request("ms=1000", labels=data[1], evaluations=6))
    assert len({trial.setting for trial in found.trials}) == len(found.trials) == 6
    assert found.verdict is package.Verdict.EXACT
    assert (found.chosen_by, found.reported_on) == (12, 12)
    assert [each.what for each in found.results] == ["float", "int8", "chosen"]
    best = max(trial.metric or 0.0 for trial in found.trials)
    chosen = tuple(block.chosen for block in found.blocks)
    assert {trial.setting: trial.metric for trial in found.trials}[chosen] == best
    assert 0 < found.measured["ms"] <= 1000
    assert all(trial.ms is not None and trial.flash for trial in found.trials)
    assert package.load(found.tflite).outputs == found.network.outputs  # type: ignore[union-attr] # it was found


def test_settings_that_exceed_the_budget_are_not_chosen(data: tuple[str, str]) -> None:
    trials = search(convolutions(), data[0], request("flash=1", evaluations=3)).trials
    sizes = [trial.flash or 0 for trial in trials]
    assert len(set(sizes)) == 3
    assert min(sizes) > 0
    for limit in sizes:
        judged = searching._judged(trials, BoardBudget.parse(f"flash={limit}"), "")
        assert [trial.exceeds for trial in judged] == [("flash",) if size > limit else () for size in sizes]


def test_no_setting_within_the_budget(data: tuple[str, str]) -> None:
    found = search(convolutions(), data[0], request("ms=0.0001", evaluations=3))
    assert found.network is None
    assert not found.chosen
    assert {trial.exceeds for trial in found.trials} == {("ms",)}
    with pytest.raises(FerruleError, match="no setting keeps the budget"):
        _ = found.tflite


def test_a_search_goes_on_from_its_file(data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, ...]] = []

    def counted(subject: Subject, setting: Sequence[int]) -> TrialPart:
        made.append(tuple(setting))
        noise = float(sum(setting)) + 1
        return TrialPart(setting=tuple(str(LEVELS[level]) for level in setting), noise=noise, flash=9 - sum(setting))

    monkeypatch.setattr(trying, "attempt", counted)
    asked = request("flash=1", results=tmp_path / "trials.jsonl")
    first = search(convolutions(), data[0], asked)
    assert len(made) == 10
    with (tmp_path / "trials.jsonl").open("ab") as file:
        file.write(b'{"key": "torn')
    again = search(convolutions(), data[0], replace(asked, evaluations=12))
    assert len(made) == 12
    assert again.trials[:10] == first.trials[:10]
    search(convolutions(), data[0], replace(asked, seed=1))  # other samples choose
    assert len(made) == 22
    (tmp_path / "trials.jsonl").write_text("{}\n")
    with pytest.raises(FerruleError, match=r"trials.jsonl: line 1"):
        search(convolutions(), data[0], asked)


def test_requests_that_are_wrong(data: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="the metric accuracy compares with labels"):
        request("ms=1", metric="accuracy")
    with pytest.raises(FerruleError, match="evaluations is 0, expected at least 1"):
        request("ms=1", evaluations=0)
    np.save(tmp_path / "few.npy", random(3, 8, 8, 3))
    with pytest.raises(InputError, match="has 3 samples, expected at least 4"):
        search(convolutions(), str(tmp_path / "few.npy"), request("ms=1"))


def small_and_large(tmp_path: Path) -> list[tuple[package.Network, str]]:
    """Two networks for pictures of two sizes, with the same samples in both."""
    networks = [convolutions(), package.Network("halved")]
    half = networks[1]
    half.add_input(package.TensorInfo("x", (1, 4, 4, 3), package.DataType.FLOAT32))
    mean = half.add_mean_layer(
        half.add_conv2d_layer("x", random(8, 3, 3, 3), random(8), name="first"), axes=(1, 2), name="mean"
    )
    half.set_outputs([half.add_fully_connected_layer(mean, random(4, 8), random(4), name="dense")])
    pictures = random(12, 8, 8, 3, seed=7)
    np.save(tmp_path / "8.npy", pictures)
    np.save(tmp_path / "4.npy", pictures[:, ::2, ::2])
    np.save(tmp_path / "few.npy", pictures[:8, ::2, ::2])
    return list(zip(networks, (str(tmp_path / "8.npy"), str(tmp_path / "4.npy")), strict=True))


def test_a_search_over_models(tmp_path: Path) -> None:
    """The file of one model's search is that of a search over both, which chooses the one that keeps the budget."""
    models, results = small_and_large(tmp_path), tmp_path / "trials.jsonl"
    alone = search(*models[0], request("ms=1000", evaluations=3, results=results))
    assert len(results.read_text().splitlines()) == 3
    limit = min(trial.ms or 0 for trial in alone.trials) / 1.5
    found = search_models(models, request(f"ms={limit:.6f}", evaluations=6, results=results))
    assert len(results.read_text().splitlines()) == 6
    assert [each.name for each in found.models] == ["convolutions", "halved"]
    assert {trial.model for trial in found.trials} == {"convolutions", "halved"}
    assert found.model.name == "halved"
    assert found.network is not None
    assert found.network.inputs[0].shape == (1, 4, 4, 3)
    assert {trial.model for trial in found.trials if not trial.exceeds} == {"halved"}
    again = search_models(models, request(f"ms={limit:.6f}", evaluations=6, results=results))
    assert again.trials == found.trials
    assert len(results.read_text().splitlines()) == 6


def test_models_that_cannot_be_compared(tmp_path: Path) -> None:
    (large, data), (small, _) = small_and_large(tmp_path)
    with pytest.raises(InputError, match=r"has 8 samples, and .* has 12"):
        search_models([(large, data), (small, str(tmp_path / "few.npy"))], request("ms=1"))
    with pytest.raises(FerruleError, match="two models are named 'convolutions'"):
        search_models([(large, data), (large, data)], request("ms=1"))


class Lossy:
    """Workers of which some are lost while they are at work."""

    def __init__(self, lost: int) -> None:
        self.lost = lost

    def submit(self, _resources: object, function: Callable[..., Any], *arguments: object) -> Attempt:
        done = Attempt()
        self.lost -= 1
        if self.lost >= 0:
            done.set_exception(WorkerLostError("worker-0 was killed by SIGKILL"))
        else:
            done.set_result(function(*arguments))
        return done


def test_a_trial_whose_worker_is_lost_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def made(_subject: Subject, setting: Sequence[int]) -> TrialPart:
        return TrialPart(setting=tuple(str(LEVELS[level]) for level in setting), noise=1.0, flash=9)

    monkeypatch.setattr(trying, "attempt", made)
    models = small_and_large(tmp_path)[:1]
    for lost, problem in ((2, ""), (3, "it was begun 3 times, and its worker was lost each time; the last: worker-0")):
        with trying.Trials.opened(models, request("flash=1")) as trials:
            monkeypatch.setattr(trials, "_workers", Lossy(lost))
            ((setting, trial),) = trials.of([(0, 0, 0, 0)])
        assert setting == (0, 0, 0, 0)
        assert trial.problem.startswith(problem)
        assert bool(trial.problem) == bool(problem)
