# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models, with the transpositions that remain."""

from __future__ import annotations

import numpy as np
from onnx_models import agrees, count, model, node

from ferrule.graph import LayerType

GENERATOR = np.random.default_rng(1)


def weights(*shape: int) -> np.ndarray:
    """Return random weights."""
    return GENERATOR.normal(size=shape).astype(np.float32)


def test_a_small_network_has_no_transposition() -> None:
    made = model(
        [
            node("Conv", "x w0 b0", "c0", pads=[1, 1, 1, 1]),
            node("Relu", "c0", "r0"),
            node("Conv", "r0 w1", "c1", pads=[1, 1, 1, 1]),
            node("Add", "c1 r0", "a"),
            node("MaxPool", "a", "p", kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", "p w2 b2", "d", group=6, strides=[2, 1], auto_pad="SAME_UPPER"),
            node("Flatten", "d", "f"),
            node("Gemm", "f g h", "l", transB=1),
            node("MatMul", "l m", "n"),
            node("Softmax", "n", "y"),
        ],
        {"x": ("float32", ["batch", 1, 8, 10])},
        ["y"],
        {
            "w0": weights(6, 1, 3, 3),
            "b0": weights(6),
            "w1": weights(6, 6, 3, 3),
            "w2": weights(6, 1, 3, 3),
            "b2": weights(6),
            "g": weights(7, 60),
            "h": weights(7),
            "m": weights(7, 4),
        },
    )
    network = agrees(made)
    assert count(network, LayerType.TRANSPOSE) == 0


def test_pooled_features_need_no_transposition() -> None:
    made = model(
        [
            node("Conv", "x w", "c"),
            node("GlobalAveragePool", "c", "g"),
            node("Reshape", "g s", "r"),
            node("Gemm", "r m", "y", alpha=0.5),
        ],
        {"x": ("float32", [1, 1, 8, 8])},
        ["y"],
        {"w": weights(4, 1, 3, 3), "s": np.array([0, -1]), "m": weights(4, 3)},
    )
    assert count(agrees(made), LayerType.TRANSPOSE) == 0
