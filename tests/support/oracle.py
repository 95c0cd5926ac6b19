# SPDX-License-Identifier: Apache-2.0
"""Independent kernels run on our networks: the reference that tests compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from needs import require_module

from ferrule.formats import to_tflite
from ferrule.graph import Array, Graph, TensorInfo
from ferrule.testing.backends.comparison import runs_of

if TYPE_CHECKING:
    from onnx import ModelProto

_ARENA_FLOOR_BYTES = 1 << 20


def tflm(network: Graph | bytes, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of TensorFlow Lite Micro's reference kernels; RuntimeError if they refuse the model."""
    return tflm_sequence(network, [inputs])[0]


def tflm_sequence(network: Graph | bytes, samples: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Return the outputs of each of several runs of one interpreter, which keeps the model's state; as `tflm`."""
    require_module("tflite_micro", "pip install --pre tflite-micro")
    from tflite_micro.python.tflite_micro import runtime

    model = network if isinstance(network, bytes) else to_tflite(network)
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=_arena_bytes(network, model))
    count, results = _output_count(model), []
    for inputs in samples:
        for index, array in enumerate(inputs):
            interpreter.set_input(np.array(array, order="C"), index)
        interpreter.invoke()
        results.append([np.array(interpreter.get_output(index)) for index in range(count)])
    return results


def litert_reference(network: Graph | bytes, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of LiteRT's reference kernels; FULLY_CONNECTED rounds once and may thus differ from TFLM's."""
    require_module("ai_edge_litert", "pip install ai-edge-litert")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    model = network if isinstance(network, bytes) else to_tflite(network)
    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def interpreter(network: Graph | bytes, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of TensorFlow Lite Micro's reference kernels, or of LiteRT's if it refuses the model."""
    try:
        return tflm(network, inputs)
    except RuntimeError:
        return litert_reference(network, inputs)


def onnxruntime_outputs(
    model: ModelProto, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None, *, fused: bool = True
) -> list[Array]:
    """Return the outputs of onnxruntime for an `onnx.ModelProto` in the configuration of `onnx_storage.session`."""
    require_module("onnxruntime", "pip install onnxruntime")
    from onnx_storage import session

    running = session(model.SerializeToString(), fused=fused)
    return [np.asarray(array) for array in running.run(outputs, dict(inputs))]


def edge_inputs(network: Graph) -> dict[str, list[Array]]:
    """Return three sets of inputs by name: all at the lowest value, all at the highest, and all at the zero point."""
    _, lowest, highest = runs_of(network, 0)
    return {"lowest": lowest, "highest": highest, "zero point": [_zero_point(info) for info in network.inputs]}


def _zero_point(info: TensorInfo) -> Array:
    zero_point = 0 if info.quantization is None else info.quantization.zero_point
    return np.full(info.shape, zero_point, info.dtype.numpy)


def _arena_bytes(network: Graph | bytes, model: bytes) -> int:
    """Return the arena's size: all tensors at once, and as much again for the interpreter's own data."""
    tensors = 0
    if not isinstance(network, bytes):
        tensors = sum(info.elements * info.dtype.size_bytes for info in (t.info for t in network.tensors))
    return _ARENA_FLOOR_BYTES + 2 * max(tensors, len(model))


def _output_count(model: bytes) -> int:
    import tflite

    return int(tflite.Model.GetRootAs(model, 0).Subgraphs(0).OutputsLength())
