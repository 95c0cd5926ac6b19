# SPDX-License-Identifier: Apache-2.0
"""What cannot become C is refused when the file is read, by every command with the same sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffer_tree import quantization, table, tensor
from run_time_models import operator_model, strided, write

from ferrule.errors import FerruleError
from ferrule.formats import load


def computed_bias() -> bytes:
    """Return an int8 FULLY_CONNECTED whose bias is an input."""
    tensors = [
        tensor("x", (2, 8), "INT8", quantization=quantization([0.1], [3])),
        tensor("w", (3, 8), "INT8", quantization=quantization([0.1], [0])),
        tensor("b", (3,), "INT32", quantization=quantization([0.01], [0])),
        tensor("y", (2, 3), "INT8", quantization=quantization([0.9], [1])),
    ]
    return write(operator_model("FULLY_CONNECTED", tensors, [0, 1, 2], [3], table("FullyConnectedOptions")))


def computed_unsigned_weights() -> bytes:
    """Return a uint8 CONV_2D whose weights are the output of a RESHAPE."""
    scale = quantization([0.1], [130])
    tensors = [
        tensor("x", (1, 4, 4, 2), "UINT8", quantization=scale),
        tensor("w", (24,), "UINT8", quantization=scale),
        tensor("v", (3, 2, 2, 2), "UINT8", quantization=scale),
        tensor("y", (1, 3, 3, 3), "UINT8", quantization=quantization([0.9], [120])),
    ]
    options = table("Conv2DOptions", Padding=1, StrideW=1, StrideH=1, DilationWFactor=1, DilationHFactor=1)
    model = operator_model("CONV_2D", tensors, [0, 2], [3], options)
    graph = model["Subgraphs"][0]
    graph["Inputs"] = np.array([0, 1], np.int32)
    reshape = operator_model("RESHAPE", [*tensors], [1], [2], table("ReshapeOptions"))
    model["OperatorCodes"].append(reshape["OperatorCodes"][0])
    first = reshape["Subgraphs"][0]["Operators"][0]
    first["OpcodeIndex"] = 1
    graph["Operators"].insert(0, first)
    return write(model)


REFUSED = {
    "a computed bias": (computed_bias(), "operator 0 FULLY_CONNECTED -> tensor 'y': bias 'b' is int32 and computed at"),
    "computed uint8 weights": (
        computed_unsigned_weights(),
        "operator 1 CONV_2D -> tensor 'y': weights 'v' are uint8 and computed at run time",
    ),
    "a slice of unknown size": (
        write(strided((5, 3), (2, 3), 1, [4])),
        "operator 0 STRIDED_SLICE -> tensor 'y': the number of elements of axis 0 depends on a begin",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_every_command_refuses_with_the_same_sentence(ferrule: Callable[..., Any], name: str, tmp_path: Path) -> None:
    data, part = REFUSED[name]
    file = tmp_path / "model.tflite"
    file.write_bytes(data)
    with pytest.raises(FerruleError) as caught:
        load(file)
    sentence = str(caught.value)
    assert part in sentence
    assert caught.value.hint
    for arguments in (
        ["inspect", file],
        ["inspect", file, "--fit"],
        ["inspect", file, "--kernels"],
        ["generate", file, "--out", tmp_path / "project"],
        ["run", file],
        ["convert", file, tmp_path / "other.tflite"],
    ):
        outcome = ferrule(*arguments)
        assert outcome.code == 2, arguments
        assert sentence in " ".join(outcome.err.split()), arguments
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]
