# SPDX-License-Identifier: Apache-2.0
"""A slice of the campaign of random shapes, and the campaign itself. tests/shapes.py runs whole campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from compare import assert_arrays_equal
from needs import require_module, require_program
from shape_campaign import ANY, Progress, Ran, Setting, check_all_turns, main, parsed, run_campaign, smallest
from shape_cases import TYPES, Case, draw

from ferrule._typing import override
from ferrule.backends.target import Goal
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, LayerType
from ferrule.network import Network
from ferrule.running.own_code import Judged, OwnCode

SEED = 1
TONIGHT = datetime.now(UTC).toordinal()
"""The seed of the nightly campaigns: another one each night. A failure prints its case, which needs no seed."""


ENGINES = {"mps3-an547": "qemu"}
"""The engines of boards that unicorn can't run."""


def ready(board: str) -> str:
    """Return the engine of a board; skip the test if a program of the campaign is missing."""
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_module("unicorn", "pip install ferrule[run]")
    engine = ENGINES.get(board, "unicorn")
    if engine == "qemu":
        require_program("qemu-system-arm", "apt install qemu-system-arm")
    return engine


@pytest.mark.emu
@pytest.mark.parametrize(("board", "count"), [("mps2-an386", 12), ("mps2-an385", 4), ("mps3-an547", 4)])
def test_a_slice_of_the_campaign(board: str, count: int) -> None:
    setting = Setting(board=board, engine=ready(board), goal="speed")
    progress = Progress(path=None, key="")
    differences = run_campaign(setting, seed=SEED, count=count, batch=100, progress=progress, every=True)
    assert [(each.kernel, each.what, each.case.brief) for each in differences] == []
    assert progress.done == count
    assert progress.kernels.total() >= count


@pytest.mark.nightly
@pytest.mark.emu
@pytest.mark.parametrize("every", [True, False], ids=["each kernel", "the chosen kernel"])
@pytest.mark.parametrize("board", ["stm32g0b1", "mps2-an385", "mps2-an386", "mps2-an505", "mps3-an547"])
def test_shapes_of_each_type(board: str, every: bool) -> None:
    """Forty of each type with every kernel and a hundred with the chosen one; goals and toolchains are drawn."""
    setting = Setting(board=board, engine=ready(board), goal=ANY, toolchain=ANY)
    progress, count = Progress(path=None, key=""), (40 if every else 100) * len(TYPES)
    differences = run_campaign(
        setting, seed=TONIGHT, count=count, batch=110, progress=progress, every=every, types=TYPES
    )
    assert [(each.kernel, each.setting, each.what, each.case.brief) for each in differences] == []
    assert progress.done == count


@pytest.mark.emu
@pytest.mark.parametrize("board", ["stm32g0b1", "mps2-an386"])
def test_padding_on_one_side_of_windows_of_one_pixel(board: str) -> None:
    """Each kernel of such layers computes outputs whose window lies outside of the image, on any side of it."""
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_module("unicorn", "pip install ferrule[run]")
    plain = Case(type=LayerType.CONV_2D, dtype=DataType.INT8, seed=588189109, height=2, width=3, channels=8, outputs=5)
    padded = [replace(plain, **{side: 1}) for side in ("top", "bottom", "left", "right")]
    cases = [plain, *padded, *(replace(each, weights="rows") for each in padded)]
    outcome = check_all_turns(cases, Setting(board=board, engine="unicorn", goal="speed"), every=True)
    assert outcome.differences == []


@pytest.mark.emu
@pytest.mark.parametrize("board", ["stm32g0b1", "mps2-an386"])
def test_dilation_of_windows_of_one_pixel(board: str) -> None:
    """It has no effect, whatever a kernel does with the window: pack neighbours, or read along an axis."""
    plain = Case(type=LayerType.CONV_2D, dtype=DataType.INT8, seed=1018577173, height=4, width=6, channels=2, outputs=2)
    cases = [
        replace(plain, **window, **dilation, dtype=dtype, type=type_)
        for window in ({}, {"kernel_h": 2}, {"kernel_w": 2})
        for dilation in ({"dilation_h": 2}, {"dilation_w": 2})
        for dtype in (DataType.INT8, DataType.INT16)
        for type_ in (LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D)
    ]
    outcome = check_all_turns(cases, Setting(board=board, engine=ready(board), goal="speed"), every=True)
    assert outcome.differences == []


def test_numpy_runs_floats_that_are_not_finite_without_warnings() -> None:
    drawn = [draw(SEED, index) for index in range(400)]
    floats = [replace(case, inputs="extreme") for case in drawn if case.dtype is DataType.FLOAT32]
    assert {LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D} < {case.type for case in floats}
    for case in floats:
        network = case.network()
        network.run(case.arrays(network))


class Numpy(OwnCode):
    """Numpy in place of the C on this machine."""

    def __init__(self, network: Network) -> None:
        self._given, self.judged = network, Judged()

    @override
    def run(self, inputs: Sequence[Array] | Mapping[str, Array], state: dict[str, Array]) -> list[Array]:
        return self._given.run(inputs)


def ran(network: Network, outputs: list[Array]) -> Ran:
    return Ran(outputs=outputs, kernels={layer.name: "fake" for layer in network.layers}, own=Numpy(network))


class Wrong(Setting):
    """A board whose kernel for windows of three rows writes a wrong last value if there are two channels or more."""

    def run(self, network: Network, inputs: Sequence[Array]) -> Ran:
        outputs = network.run(list(inputs))
        for number, layer in enumerate(network.layers):
            weights = network.info(layer.present_inputs[1]).shape if len(layer.present_inputs) > 1 else ()
            if layer.type is LayerType.CONV_2D and weights[1] == 3 and weights[3] >= 2:
                outputs[number].flat[-1] = 0 if outputs[number].flat[-1] else 1
        return ran(network, outputs)


class Refusing(Setting):
    """A board that cannot run any firmware with a MAX_POOL_2D."""

    def run(self, network: Network, inputs: Sequence[Array]) -> Ran:
        for layer in network.layers:
            if layer.type is LayerType.MAX_POOL_2D:
                raise FerruleError("a pool")
        return ran(network, network.run(list(inputs)))


def test_a_difference_is_found_and_made_smaller() -> None:
    differences = run_campaign(
        Wrong(), seed=SEED, count=100, batch=50, progress=Progress(path=None, key=""), every=False
    )
    assert differences
    case = smallest(differences[0]).case
    assert (case.type, case.kernel_h, case.channels) == (LayerType.CONV_2D, 3, 2)
    assert case.size <= differences[0].case.size
    assert (case.width, case.kernel_w, case.outputs, case.batch) == (1, 1, 1, 1)
    assert parsed(case.brief) == case


def test_a_case_that_cannot_be_run_is_found_among_others() -> None:
    cases = [draw(SEED, index) for index in range(240)]
    wanted = [case for case in cases if case.type is LayerType.MAX_POOL_2D]
    assert wanted
    found = check_all_turns(cases, Refusing(), every=False)
    assert [each.case for each in found.differences] == wanted
    assert found.kernels.total() == len(cases) - len(wanted)


def test_each_candidate_has_its_turn() -> None:
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_module("unicorn", "pip install ferrule[run]")
    case = Case(type=LayerType.CONV_2D, dtype=DataType.INT8, seed=1, height=2, width=3, channels=8, outputs=5)
    outcome = check_all_turns([case], Setting(), every=True)
    assert outcome.differences == []
    assert "int8 conv2d_s8" in outcome.kernels
    assert len(outcome.kernels) > 1
    assert set(check_all_turns([case], Setting(), every=False).kernels) < set(outcome.kernels)


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    first = Progress(path=path, key="one")
    assert run_campaign(Refusing(), seed=3, count=2, batch=1, progress=first, every=False) == []
    again = Progress(path=path, key="one")
    again.load()
    assert (again.done, again.kernels) == (2, first.kernels)
    other = Progress(path=path, key="two")
    other.load()
    assert other.done == 0


def test_types_are_drawn_in_turn() -> None:
    progress = Progress(path=None, key="")
    types = [LayerType.MAX_POOL_2D, LayerType.ADD]
    found = run_campaign(Refusing(), seed=4, count=6, batch=6, progress=progress, every=False, types=types)
    assert [each.case for each in found] == [draw(4, index, LayerType.MAX_POOL_2D) for index in (0, 2, 4)]
    assert all(draw(4, index, each).type is each for index in range(3) for each in TYPES)


def test_a_batch_draws_its_goal_and_toolchain() -> None:
    drawn = [Setting(goal=ANY, toolchain=ANY).drawn(Random(seed)) for seed in range(40)]
    assert {each.goal for each in drawn} == set(Goal)
    assert {each.toolchain for each in drawn} == {"zig", "arm-none-eabi-gcc"}
    assert Setting(goal="size", toolchain="zig").drawn(Random(1)) == Setting(goal="size", toolchain="zig")


def test_the_same_numbers_give_the_same_case() -> None:
    assert draw(1, 5) == draw(1, 5) != draw(1, 6)
    network = draw(1, 5).network()
    assert_arrays_equal(draw(1, 5).arrays(network), draw(1, 5).arrays(network))


def test_the_command_reports_the_smallest_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Setting, "run", Wrong.run)
    monkeypatch.setattr("sys.argv", ["shapes.py", "--count", "60", "--board", "mps2-an385", "--chosen"])
    assert main("shapes") == 1
    said = capsys.readouterr().out
    assert "DIFFERENT: fake: 1 of " in said
    assert "--board mps2-an385" in said
    (case,) = {line.split("--case '")[1].rstrip("'") for line in said.splitlines() if "--case" in line}
    monkeypatch.setattr("sys.argv", ["shapes.py", "--case", case])
    assert main("shapes") == 1
