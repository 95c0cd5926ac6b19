# SPDX-License-Identifier: Apache-2.0
"""LayerNormalization of quantised ONNX models: one layer of integers, or layers of float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx_models import count, drawn, load, model, node
from oracle import onnxruntime_outputs

from ferrule import formats
from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.writer import to_tflite
from ferrule.graph import Array, LayerType, Rounding


def points(dtype: str) -> dict[str, Array]:
    """Return the scales and zero points of an input and an output."""
    low = np.iinfo(dtype).min
    scales = {"sx": np.array(0.023, np.float32), "sy": np.array(0.031, np.float32)}
    return scales | {"zx": np.array(low + 117, dtype), "zy": np.array(low + 101, dtype)}


def normalised(dtype: str, *constants: str, **attributes: Any) -> Any:  # noqa: ANN401
    """Return a LayerNormalization of 6 x 8 rows of 16 between conversions."""
    numbers = {
        "g": np.linspace(0.6, 1.4, 16, dtype=np.float32),
        "b": np.linspace(-0.5, 0.7, 16, dtype=np.float32),
        "large": np.full(16, 1e9, np.float32),
        "image": np.ones((8, 16), np.float32),
    }
    nodes = [
        node("QuantizeLinear", "x sx zx", "q"),
        node("DequantizeLinear", "q sx zx", "d"),
        node("LayerNormalization", f"d {' '.join(constants)}", "r", **attributes),
        node("QuantizeLinear", "r sy zy", "p"),
        node("DequantizeLinear", "p sy zy", "y"),
    ]
    return model(nodes, {"x": ("float32", [1, 6, 8, 16])}, ["y"], points(dtype) | numbers)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("constants", [("g",), ("g", "b")])
def test_layer_normalisation_is_one_layer_of_integers(dtype: str, constants: Sequence[str]) -> None:
    made = normalised(dtype, *constants)
    network = load(made)
    assert count(network, LayerType.LAYER_NORMALIZATION) == 1
    (layer,) = [each for each in network.layers if each.type is LayerType.LAYER_NORMALIZATION]
    assert layer.rounding is Rounding.ONNX
    written = formats.load(made.SerializeToString(), onnx_arithmetic="as-written")
    assert count(written, LayerType.LAYER_NORMALIZATION) == 0
    assert count(written, LayerType.RSQRT) == 1
    feeds = drawn(network)
    (got,), (wanted,) = network.run(dict(feeds)), onnxruntime_outputs(made, feeds)
    steps = (wanted - got) / 0.031
    far = np.abs(_normalised_in_steps(feeds["x"], dtype, with_bias="b" in constants) % 1 - 0.5) > 1 / 128
    assert far.mean() > 0.9
    assert not steps[far].any(), "nothing differs from onnxruntime where the real number is not near a half"
    assert np.abs(steps).max() < 1.5


def _normalised_in_steps(data: Array, dtype: str, *, with_bias: bool) -> Array:
    """Return the real results in steps of the output."""
    zero, limits = points(dtype)["zx"].astype(np.float64), np.iinfo(dtype)
    stored = np.clip(np.rint(data / np.float32(0.023)) + zero, limits.min, limits.max)
    values = (stored - zero) * np.float64(np.float32(0.023))
    centred = values - values.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-5)
    gamma, beta = np.linspace(0.6, 1.4, 16, dtype=np.float32), np.linspace(-0.5, 0.7, 16, dtype=np.float32)
    return np.asarray((normal * gamma + (beta if with_bias else 0)) / np.float64(np.float32(0.031)))


@pytest.mark.parametrize(
    ("constants", "attributes"), [(("image",), {"axis": 2}), (("large",), {}), (("g",), {"epsilon": 1e30})]
)
def test_other_layer_normalisations_stay_float32(constants: Sequence[str], attributes: Mapping[str, Any]) -> None:
    network = load(normalised("int8", *constants, **attributes))
    assert count(network, LayerType.LAYER_NORMALIZATION) == 0
    assert count(network, LayerType.RSQRT) == 1


def test_a_layer_of_integers_is_not_one_of_tensorflow_lite() -> None:
    made = normalised("int8", "g")
    with pytest.raises(UnsupportedError, match="'LayerNormalization_r': LAYER_NORMALIZATION cannot") as caught:
        to_tflite(load(made), rounding=Rounding.TFLM)
    assert caught.value.hint == 'onnx_arithmetic="as-written" reads it as layers of float32 that can'
    written = formats.load(made.SerializeToString(), onnx_arithmetic="as-written")
    assert to_tflite(written, rounding=Rounding.TFLM)
