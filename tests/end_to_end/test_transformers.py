# SPDX-License-Identifier: Apache-2.0
"""Transformers as they come from ONNX, quantised by onnxruntime, on an emulated board."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from needs import require_module

import ferrule
from ferrule.graph import LayerType


@pytest.mark.emu
@pytest.mark.parametrize("kind", ["keyword_transformer", "keyword_transformer_13", "vision_transformer"])
def test_a_quantised_transformer_equals_numpy(kind: str, tmp_path: Path) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("onnx", "pip install 'ferrule[onnx]'")
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")
    import onnx
    import onnx_graphs
    import onnx_storage

    made = onnx_graphs.GRAPHS[kind]()
    quantised = onnx_storage.quantised(made, onnx_graphs.samples_of(made, 4, seed=1), onnx_storage.FORMS["qdq-s8"])
    onnx.save(quantised, tmp_path / f"{kind}.onnx")
    firmware = ferrule.compile(tmp_path / f"{kind}.onnx", board="nrf52840dk", goal="speed")
    types = Counter(record.type for record in firmware.artifact.operators)
    assert types[LayerType.LOOKUP] == types[LayerType.SOFTMAX] == 2, "GELU is a table, in each block"
    assert types[LayerType.LAYER_NORMALIZATION] == types[LayerType.BATCH_MATMUL] == 4
    report = firmware.run(onnx_graphs.samples_of(made, 1, seed=2)[0])
    assert report.verdict.agrees
    macs = sum(layer.macs for layer in report.layers)
    assert report.count.per_inference < 4 * macs
