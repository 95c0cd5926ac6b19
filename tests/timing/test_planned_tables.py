# SPDX-License-Identifier: Apache-2.0
"""The tables of planned times: what they cover, and planned beside emulated times."""

from __future__ import annotations

import pytest
from corpus_shapes import KINDS, corpus
from gate import some_of
from mobilenet_v2 import mobilenet_v2
from needs import require_module
from planned_table import GOALS, board_of, chosen_kernels, compare, compiled, layers_of, write

from ferrule.timing.planned import FOLDER, kernel_timings, read_kernel_timings

UPDATE = "run `python benchmarks/planned_time.py --update`, with FERRULE_MODELS"
CLOSE = 0.1
DEFAULTS = 2
"""The most kernels of a kind that may take the median, since they are chosen only beside all other shapes."""
CORES = sorted(path.stem for path in FOLDER.glob("*.toml"))
COVERED = [(core, kind) for core in CORES for kind in KINDS]
DISTINCT = ("cortex-m0plus", "cortex-m3", "cortex-m4")
"""Cores whose goals choose different kernels; each other core has the instructions of one of them."""


@pytest.mark.parametrize(
    ("core", "kind"),
    some_of(COVERED, [each for each in COVERED if each[0] in DISTINCT or each[1] == "int8"]),
)
def test_the_table_has_the_kernels_that_goals_choose_for_the_corpus(core: str, kind: str) -> None:
    timings = kernel_timings(core)
    assert timings is not None
    chosen = {
        work.kernel: timings.knows(work)
        for goal in (*GOALS, "time")
        for work in chosen_kernels(kind, board_of(core), goal).values()
    }
    others = [kernel for kernel, known in chosen.items() if not known]
    assert len(others) <= DEFAULTS, f"{others}: {UPDATE}"


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("core", CORES)
def test_a_network_that_no_table_is_fitted_to_takes_what_was_planned(core: str) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    found = compare("small", mobilenet_v2(32, 0.35, classes=10, blocks=3), core, "zig", held_out=True)
    assert abs(found.ratio - 1) < CLOSE, f"{found}: {UPDATE}"


@pytest.mark.cc
@pytest.mark.emu
def test_the_goal_time_takes_fewer_cycles_by_more_instructions() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    network = corpus("int8", ("fc_1024_10",))
    speed, time = (layers_of(compiled(network, "cortex-m4", "zig", goal))[1][0] for goal in ("speed", "time"))
    assert speed.work.instructions is not None
    assert time.work.instructions is not None
    assert time.work.instructions > speed.work.instructions, "as estimated"
    assert time.cycles < speed.cycles


def test_a_table_is_written_as_it_is_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("tables")
    for core in CORES:
        timings = kernel_timings(core)
        assert timings is not None
        write(timings, folder)
        assert read_kernel_timings(folder / f"{core}.toml") == timings
