# SPDX-License-Identifier: Apache-2.0
"""The search for the best precision of layers within a budget of a board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from float_networks import convolutions, random, samples
from needs import require_module

import ferrule as package
from ferrule.errors import FerruleError, InputError
from ferrule.quantization import BoardBudget, SearchRequest, search
from ferrule.quantization.search import search as searching
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
    found = search(convolutions(), data[0], request("ms=1000", labels=data[1], evaluations=12))
    assert len({trial.setting for trial in found.trials}) == len(found.trials) == 12
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

    monkeypatch.setattr(searching, "attempt", counted)
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
