# SPDX-License-Identifier: Apache-2.0
"""One figure for the arena: `inspect`, `--fit`, the report of a run and the generated C state the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import small_networks
import state_networks
from firmware_figures import MODELS
from needs import require_module

import ferrule
from ferrule import Job, Network
from ferrule.firmware import emit
from ferrule.formats import to_tflite
from ferrule.graph import DataType, TensorInfo
from ferrule.memory import ArenaOverflowError
from ferrule.report.inspection import Inspection
from ferrule.report.run_document import ReportDocument

Ferrule = Callable[..., Any]
GOALS = ("speed", "balanced", "size", "memory", "time")
BOARDS = ("mps2-an386", "mps3-an547", "stm32g0b1")
NETWORKS: dict[str, Callable[[], Network]] = {
    "dense": small_networks.dense,
    "two_by_two": small_networks.two_by_two,
    "float": small_networks.float_dense,
    "state": state_networks.stream,
}


def declared(network: Network, job: Job) -> int:
    """Return the size of the arena that the generated C declares, as a program reads it."""
    (size,) = re.findall(r"_SRAM_BYTES = (\d+)", "".join(emit(network, job).files.values()))
    return int(size)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_figure_is_the_size_in_the_generated_code(name: str, goal: str) -> None:
    network = NETWORKS[name]()
    inspection = ferrule.inspect(network, board=BOARDS[1], goal=goal, fit=True)
    assert inspection.boards is not None
    found = {fit.board: fit for fit in inspection.boards}
    assert inspection.arena == found[BOARDS[1]].arena
    for board in BOARDS:
        arena = found[board].arena
        assert arena is not None
        assert (arena.board, arena.goal) == (board, goal)
        assert arena.size_bytes == declared(network, Job(board=board, goal=goal))
        assert sum(need.parts.get("arena", 0) for need in found[board].memories) == arena.size_bytes
        assert arena.bound_bytes <= arena.size_bytes
        assert (arena.certificate == "optimal") == (arena.bound_bytes == arena.size_bytes)


@pytest.mark.parametrize(("model", "goal"), [("ic", "balanced"), ("kws", "memory"), ("vww", "speed"), ("ad", "size")])
def test_the_figure_of_a_trained_model(models: Path, model: str, goal: str) -> None:
    network = ferrule.load(models / f"{MODELS[model]}.tflite")
    arena = ferrule.inspect(network, goal=goal, division=False).arena
    assert arena is not None
    assert arena.size_bytes == declared(network, Job(goal=goal))


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("name", "board", "goal"), [("two_by_two", "mps2-an386", "balanced"), ("state", "stm32g0b1", "memory")]
)
def test_a_run_has_the_figure_that_was_inspected(
    ferrule: Ferrule, tmp_path: Path, name: str, board: str, goal: str
) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    network, model, saved = NETWORKS[name](), tmp_path / "model.tflite", tmp_path / "run.json"
    model.write_bytes(to_tflite(network))
    asked = (model, "--board", board, "--goal", goal)
    shown = ferrule("inspect", *asked, "--json")
    arena = msgspec.json.decode(shown.out, type=Inspection).arena
    ran = ferrule("run", *asked, "--json", saved)
    assert ran.code == 0, ran.err
    report = msgspec.json.decode(saved.read_bytes(), type=ReportDocument)
    assert report.memory.arena == arena
    assert arena is not None
    linked = report.memory.ram.workspace - arena.size_bytes - arena.state_bytes  # by the firmware that ran
    assert 0 <= linked < 16, "the state is aligned"
    figure = f"{arena.size_bytes:,} B"
    assert re.search(rf"^arena +{figure}, {arena.certificate}", ran.out, re.MULTILINE)
    console = ferrule("inspect", *asked)
    assert f"arena: {figure} on {board} (goal {goal}), {arena.certificate}" in console.out
    for flag in ("--markdown", "--html"):
        pages = [tmp_path / f"{command}{flag}" for command in ("inspect", "run")]
        assert ferrule("inspect", *asked, flag, pages[0]).code == 0
        assert ferrule("report", saved, flag, pages[1]).code == 0
        assert all(figure in page.read_text() for page in pages)


def test_a_network_without_firmware_has_no_arena() -> None:
    inspection = ferrule.inspect(small_networks.two_by_two(), backends=["CpuRef"])
    assert inspection.arena is None
    assert "CpuRef" in inspection.arena_problem
    assert inspection.plan  # of the activations alone
    assert inspection.whole_layers_bytes > 0


def test_an_arena_that_is_too_large_is_planned_nevertheless(ferrule: Ferrule, tmp_path: Path) -> None:
    network = Network("large")
    x = network.add_input(TensorInfo("x", (200, 100), DataType.FLOAT32))
    network.set_outputs([network.add_relu_layer(x, name="y")])
    path = tmp_path / "large.tflite"
    path.write_bytes(to_tflite(network))
    with pytest.raises(ArenaOverflowError) as caught:
        emit(network, Job(board="microbit"))
    shown = ferrule("inspect", path, "--board", "microbit")
    assert shown.code == 0
    assert f"arena: {caught.value.need:,} B on microbit" in shown.out
    assert "too large" in shown.out


def test_the_figure_is_that_of_the_project_s_board(
    ferrule: Ferrule, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ferrule.toml").write_text('board = "stm32g0b1"\ngoal = "size"\n')
    arena = msgspec.json.decode(ferrule("inspect", dense, "--json").out, type=Inspection).arena
    assert arena is not None
    assert (arena.board, arena.goal) == ("stm32g0b1", "size")
