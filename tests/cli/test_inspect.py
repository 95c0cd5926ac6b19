# SPDX-License-Identifier: Apache-2.0
"""What `ferrule inspect` says of models that are refused, and of models that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from flatbuffer_tree import Table, operator, table, tensor, write

from ferrule import Job, Network
from ferrule.boards import load_board
from ferrule.errors import FerruleError
from ferrule.firmware import emit
from ferrule.formats import load, to_tflite
from ferrule.graph import DataType, TensorInfo
from ferrule.memory import ArenaOverflowError
from ferrule.report.inspection import Inspection
from ferrule.report.refusal import RefusedModel

Ferrule = Callable[..., Any]


def chain(*types: str, wrong: int | None = None) -> bytes:
    """Return a model whose operators read one another's outputs; tensor `wrong` is of a type that no schema has."""
    import tflite

    codes = [getattr(tflite.BuiltinOperator, type_) for type_ in types]
    tensors = [tensor(f"t{index}", (1, 4)) for index in range(len(types) + 1)]
    if wrong is not None:
        tensors[wrong]["Type"] = 99
    graph = table(
        "SubGraph",
        Tensors=tensors,
        Inputs=np.array([0], np.int32),
        Outputs=np.array([len(types)], np.int32),
        Operators=[operator([index], [index + 1], code=index) for index in range(len(types))],
    )
    model: Table = table(
        "Model",
        Version=3,
        OperatorCodes=[table("OperatorCode", DeprecatedBuiltinCode=code, BuiltinCode=code) for code in codes],
        Subgraphs=[graph],
        Buffers=[table("Buffer")],
    )
    return write(model)


def test_everything_that_blocks_is_listed(ferrule: Ferrule, tmp_path: Path) -> None:
    path = tmp_path / "refused.tflite"
    path.write_bytes(chain("RELU", "RNN", "RNN", "RELU", "RELU", "LSTM", wrong=5))
    outcome = ferrule("inspect", path)
    assert outcome.code == 2
    assert outcome.err == "error: refused.tflite: 4 places block the model, for 3 reasons\n"
    for text in ("2 │ RNN", "1 │ RELU", "operator 5 LSTM", "what would unblock it", "unroll the layer"):
        assert text in outcome.out
    listed = ferrule("inspect", path, "--json")
    assert (listed.code, listed.err) == (2, outcome.err)
    document = msgspec.json.decode(listed.out, type=RefusedModel)
    assert document.model == "refused.tflite"
    places = [(part.type, part.place.split()[1]) for part in document.problems]
    assert places == [("RNN", "1"), ("RNN", "2"), ("RELU", "4"), ("LSTM", "5")]
    assert [(reason.count, reason.type) for reason in document.reasons] == [(2, "RNN"), (1, "RELU"), (1, "LSTM")]
    assert all(part.reason and part.hint for part in document.problems)


def test_one_problem_keeps_its_error(ferrule: Ferrule, tmp_path: Path) -> None:
    path = tmp_path / "one.tflite"
    path.write_bytes(chain("RNN"))
    outcome = ferrule("inspect", path)
    assert outcome.code == 2
    assert outcome.err.startswith("error: one.tflite: operator 0 RNN -> tensor 't1': this operator is not supported")
    assert "1 │ RNN" in outcome.out
    assert ferrule("inspect", tmp_path / "none.tflite").out == ""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose two tensors need 40,000 bytes, more than a micro:bit has."""
    network = Network("large")
    x = network.add_input(TensorInfo("x", (200, 100), DataType.FLOAT32))
    network.set_outputs([network.add_relu_layer(x, name="y")])
    path = tmp_path_factory.mktemp("models") / "large.tflite"
    path.write_bytes(to_tflite(network))
    return path


def test_the_boards_that_a_model_fits(ferrule: Ferrule, large: Path) -> None:
    inspected = msgspec.json.decode(ferrule("inspect", large, "--fit", "--json").out, type=Inspection)
    assert inspected.boards is not None
    assert inspected.division is None
    found = {fit.board: fit for fit in inspected.boards}
    for name in ("mps2-an386", "stm32g0b1"):
        assert found[name].fits
        workspace_bytes = emit(load(large), Job(board=name)).workspace_bytes
        place = load_board(name).placement.workspace
        (need,) = (need for need in found[name].memories if need.memory == place)
        assert need.parts["arena"] == workspace_bytes
        assert need.need_bytes == sum(need.parts.values())
    small = found["microbit"]
    assert not small.fits
    with pytest.raises(ArenaOverflowError) as caught:
        emit(load(large), Job(board="microbit"))
    (need,) = (need for need in small.memories if need.missing_bytes)
    assert need.parts["arena"] == caught.value.need
    assert need.missing_bytes == caught.value.need + need.parts["stack"] - caught.value.have
    assert f"{need.missing_bytes:,} B too many for ram 'ram'" in ferrule("inspect", large, "--fit").out


def test_an_error_names_boards_with_room(ferrule: Ferrule, large: Path, tmp_path: Path) -> None:
    outcome = ferrule("generate", large, "--board", "microbit", "--out", tmp_path / "project")
    assert outcome.code == 2
    _, listed = outcome.err.split("Boards with room for this plan: ")
    names = listed.split(";")[0].split(", ")
    assert "mps2-an386" in names
    assert "microbit" not in names
    for name in names:
        emit(load(large), Job(board=name))


def test_problems_of_other_errors_are_empty() -> None:
    assert FerruleError("a message").problems == ()
