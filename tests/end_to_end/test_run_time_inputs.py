# SPDX-License-Identifier: Apache-2.0
"""Weights, indices and begins from run time in firmware, on cores with and without DSP and vector instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from merged import merged
from needs import require_module, require_program
from run_time_models import models

import ferrule
from ferrule.graph import DataType, Graph
from ferrule.network import Network
from ferrule.operators.table import having
from ferrule.report import Verdict
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import layer_case, placed
from ferrule.testing.backends.layers import refusal_of_reference

pytestmark = pytest.mark.emu
BOARDS = ["mps2-an386", *(pytest.param(board, marks=pytest.mark.nightly) for board in ("stm32g0b1", "mps3-an547"))]


def weighted(dtypes: Sequence[DataType], seeds: range) -> Iterator[Graph]:
    """Yield layers whose weights come from run time, and their biases, too, where the operator accepts that."""
    for type_ in sorted(having(weighted=True)):
        for dtype in dtypes:
            for seed in seeds:
                graph = layer_case(type_, dtype, seed)
                names = graph.layers[0].present_inputs
                for constants in (set(names[2:]), set()):
                    found = placed(graph, constants)
                    if not refusal_of_reference(found):
                        yield found


def check(network: Network, board: str, *verdicts: Verdict, goal: str = "balanced") -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    if board == "mps3-an547":
        require_program("qemu-system-arm", "apt-get install qemu-system-arm")
        engine = "qemu"
    else:
        require_module("unicorn", "pip install 'ferrule[run]'")
        engine = "unicorn"
    report = ferrule.compile(network, board=board, goal=goal).run(random_inputs(network, 3), engine=engine)
    assert report.verdict in verdicts, report


@pytest.mark.parametrize("board", BOARDS)
def test_integers_are_exact(board: str, request: pytest.FixtureRequest) -> None:
    everything = request.node.get_closest_marker("nightly") is not None
    seeds = range(6) if everything else range(2)
    graphs = [*weighted([DataType.INT8, DataType.INT16], seeds), *map(ferrule.load, models())]
    check(merged(graphs), board, Verdict.EXACT)


@pytest.mark.nightly
@pytest.mark.parametrize("board", BOARDS)
def test_floats_have_the_bits_of_their_own_c(board: str) -> None:
    check(merged(list(weighted([DataType.FLOAT32], range(3)))), board, Verdict.EXACT)


@pytest.mark.nightly
def test_integers_are_exact_row_by_row() -> None:
    graphs = [*weighted([DataType.INT8], range(3)), *map(ferrule.load, models())]
    check(merged(graphs), "mps2-an386", Verdict.EXACT, goal="memory")
