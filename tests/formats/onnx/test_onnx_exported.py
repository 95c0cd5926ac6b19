# SPDX-License-Identifier: Apache-2.0
"""Heads and blocks as exporters write them, from the files that tests/exporters/blocks.py made: read, compared with
onnxruntime, quantised, and run as C.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import model_worker
import numpy as np
import onnx_models
import pytest
from ckernels import run_native
from gate import some_of
from merged import merged
from needs import require_module
from numpy.testing import assert_allclose, assert_array_equal
from oracle import onnxruntime_outputs

import ferrule
from ferrule.graph import LayerType
from ferrule.graph.real_values import quantize
from ferrule.network import Network
from ferrule.quantization.own import CONVERSIONS, is_float

if TYPE_CHECKING:
    import onnx

FOLDER = Path(__file__).parents[2] / "exporters" / "blocks"
PATHS = {path.stem: path for path in sorted(FOLDER.glob("*.onnx"))}
INTEGERS = ("quantize_static", "pt2e", "brevitas")
"""The exporters whose files are quantised already."""
INT8 = [name for name in PATHS if name.startswith(INTEGERS)]
FLOAT = [name for name in PATHS if not name.startswith(INTEGERS)]
STAY_FLOAT = {
    "dynamo-attention": {"EXP"},  # of the error function of GELU
    "torchscript-attention": {"EXP"},
    "quantize_static-hard_swish": {"ADD", "MUL"},  # the last one is no HardSwish
    "quantize_static-squeeze_excite": {"ADD", "MUL"},  # of HardSigmoid, which onnxruntime leaves out
    "pt2e-flatten": {"FULLY_CONNECTED"},  # PyTorch leaves out what is last
    "pt2e-residual": {"ADD", "CONV_2D", "RELU"},
}
"""By file: the types of the layers that compute in float32 after quantisation; none of the others has any."""


@pytest.fixture(autouse=True)
def _installed() -> None:
    require_module("onnx", "pip install 'ferrule[onnx]'")
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")


def model(name: str) -> onnx.ModelProto:
    """Return the model in a file."""
    import onnx

    return onnx.load(PATHS[name])


def float_types(network: Network) -> set[str]:
    """Return the types of the layers that compute in float32, without those that only move elements."""
    left_out = {*CONVERSIONS, LayerType.RESHAPE, LayerType.TRANSPOSE}
    return {str(layer.type) for layer in network.layers if layer.type not in left_out and is_float(network, layer)}


def test_files_are_small_and_state_their_exporters() -> None:
    assert len(PATHS) > 40
    for name, path in PATHS.items():
        (stated,) = model(name).metadata_props
        assert stated.key == "exporter"
        assert [len(each.split()) for each in stated.value.split(", ")].count(2) == stated.value.count(",") + 1
        assert path.stat().st_size < 30_000


@pytest.mark.parametrize("name", FLOAT)
def test_float_blocks_equal_onnxruntime(name: str) -> None:
    onnx_models.agrees(model(name))


@pytest.mark.parametrize("name", INT8)
def test_integer_blocks_equal_onnxruntime(name: str, tmp_path: Path) -> None:
    """What saturates in onnxruntime is counted, as in test_onnx_models. PT2E's files go on in float32, so that they are
    compared without the optimiser: then its convolutions sum floats, and may be off by a step before a float layer.
    """
    if name.startswith("pt2e"):
        written = ferrule.load(PATHS[name], onnx_arithmetic="as-written")
        given = onnx_models.drawn(written)
        for ours, theirs in zip(written.run(given), onnxruntime_outputs(model(name), given, fused=False), strict=True):
            assert_allclose(ours, theirs, rtol=0, atol=2e-3)
    else:
        model_worker.onnxruntime(PATHS[name], tmp_path, 2, 60)
        found = model_worker.counted(PATHS[name], tmp_path, 0, 60)
        assert found["verdict"] in {"exact", "close", "counted"}, found
    network = ferrule.load(PATHS[name])
    assert float_types(network) == STAY_FLOAT.get(name, set())
    proved(network)


@pytest.mark.parametrize("exporter", some_of(["dynamo", "torchscript", "keras", "sklearn"], ["torchscript", "sklearn"]))
def test_float_blocks_become_integers(exporter: str, tmp_path: Path) -> None:
    """All of an exporter are one network, since each call of the library takes seconds."""
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")
    names = [name for name in FLOAT if name.startswith(exporter)]
    network = merged([ferrule.load(PATHS[name]) for name in names])
    random, data, given = np.random.default_rng(1), [], {}
    for info in network.inputs:
        samples = random.normal(size=(32, *info.shape[1:])).astype(np.float32)
        np.save(tmp_path / f"{info.name}.npy", samples)
        data.append(f"{info.name}={tmp_path / info.name}.npy")
        given[info.name] = samples[:1]
    done = ferrule.quantize(network, data, compared=0)
    floats: dict[str, set[str]] = {}
    for layer in done.floats:
        floats.setdefault(names[int(layer.name.partition("_")[0].removeprefix("n"))], set()).add(layer.type)
    assert floats == {name: types for name, types in STAY_FLOAT.items() if name.startswith(exporter)}
    for info, ours, theirs in zip(network.outputs, done.network.run(given, real=True), network.run(given), strict=True):
        assert np.abs(ours - theirs).max() < 0.2 * max(float(np.abs(theirs).max()), 0.5), info.name
    proved(done.network)


def proved(network: Network) -> None:
    """Assert that the generated C has the bits of the numpy reference; floats that are computed may be rounded."""
    random = np.random.default_rng(2)
    inputs = [quantize(info, random.normal(size=info.shape).astype(np.float32)) for info in network.inputs]
    for ours, theirs in zip(run_native(network, inputs), network.run(inputs), strict=True):
        if ours.dtype == np.float32 and float_types(network):
            assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        else:
            assert_array_equal(ours, theirs)
