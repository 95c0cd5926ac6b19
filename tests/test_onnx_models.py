# SPDX-License-Identifier: Apache-2.0
"""ONNX models of the exporters that users have: read, and compared with onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from needs import require_module

import ferrule

SMALL: dict[str, tuple[object, ...]] = {
    "small_cnn": (8,),
    "ds_cnn": (8, 1, (13, 6)),
    "residual": (8, (4, 6)),
    "autoencoder": (12, 6, 2),
    "squeeze_and_excitation": (8, 8),
    "u_net": (8, 2),
    "sound": (64, 4),
}
"""The functions of `onnx_graphs` and sizes that are quick to run."""


@pytest.fixture(autouse=True)
def _installed() -> None:
    require_module("onnx", "pip install 'ferrule[onnx]'")
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")


@pytest.mark.parametrize("kind", SMALL)
def test_float32_graphs(kind: str) -> None:
    import onnx_graphs
    import onnx_storage

    model = getattr(onnx_graphs, kind)(*SMALL[kind])
    samples = onnx_graphs.samples_of(model, 2)
    expected = onnx_storage.sequence(model.SerializeToString(), samples)
    network = ferrule.load(model.SerializeToString())
    for index, sample in enumerate(samples):
        for position, found in enumerate(network.run(list(sample.values()))):
            np.testing.assert_allclose(found, expected[f"output{position}"][index], rtol=1e-5, atol=1e-5)
