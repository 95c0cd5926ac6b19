# SPDX-License-Identifier: Apache-2.0
"""Vela's older code generator, which Vela calls legacy: its streams, and what it does otherwise.

The backend never asks for it, but `ferrule ethos-u` executes its streams, so they test the model of the NPU, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ferrule.backends.ethos_u.compiled import CompiledStream, read_npz
from ferrule.backends.ethos_u.known_differences import BY_ONE, Check
from ferrule.graph import DataType, LayerType
from ferrule.network import Network
from ferrule.operators.operator import Operands
from ferrule.operators.spatial.resize import ResizeDescriptor

ARGUMENT = "--debug-force-legacy-core"
_WHO = "Vela's older code generator"
_ENLARGING = frozenset({LayerType.RESIZE_BILINEAR, LayerType.RESIZE_NEAREST_NEIGHBOR})


@dataclass(slots=True)
class Names:
    """The names of a file's tensors in its order, which has none, and what is not in the file."""

    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    on_the_core: list[str] = field(default_factory=list)
    """The operators that Vela leaves to the core."""


def written_stream(folder: Path, names: Names, network: Network) -> CompiledStream:
    """Return the only stream in a folder, with its tensors in the network's order."""
    (file,) = folder.glob("m_vela_sg*.npz")
    stream = read_npz(file)
    inputs = dict(zip(names.inputs, stream.inputs, strict=True))
    outputs = dict(zip(names.outputs, stream.outputs, strict=True))
    return replace(
        stream,
        inputs=tuple(inputs[info.name] for info in network.inputs if info.name in inputs),
        outputs=tuple(
            replace(outputs[info.name], name=f"output{number}") for number, info in enumerate(network.outputs)
        ),
    )


@contextmanager
def tensor_names() -> Iterator[Names]:
    """Return an object that gets the names of the tensors in Vela's file.

    Vela is to run once in the meantime. What it remembers of addresses from earlier runs is forgotten before.
    """
    from ethosu.vela import rawdata_writer, tensor
    from ethosu.vela.nn_graph import PassPlacement
    from ethosu.vela.operation import Op

    no_work = {Op.CustomNpuOp, Op.Placeholder, Op.SubgraphInput, Op.Const}
    tensor.TensorAddressMap.address_map.clear()
    tensor.create_equivalence_id.cache_clear()
    names = Names()
    write = rawdata_writer.write_rawdata_output

    def noting(nng: Any, *arguments: object) -> None:  # noqa: ANN401
        for op in (op for graph in nng.subgraphs for each in graph.passes for op in each.ops):
            if op.type == Op.CustomNpuOp:
                names.inputs += [each.name for each in op.inputs[4:]]
                names.outputs += [each.name for each in op.outputs]
        core = (graph for graph in nng.subgraphs if graph.placement == PassPlacement.Cpu)
        operators = (op for graph in core for each in graph.passes for op in each.ops)
        names.on_the_core += [op.type.name for op in operators if op.type not in no_work]
        write(nng, *arguments)

    with patch.object(rawdata_writer, "write_rawdata_output", noting):
        yield names


def legacy_explanation(network: Network, options: Sequence[str]) -> str:
    """Return what the older code generator does otherwise for a network; "" if nothing is known.

    To save memory it computes several enlarging layers by stripes of rows, which may begin between the copies of a row.
    """
    for layer in network.layers:
        if (found := _TABLE.get(layer.type)) is not None and found[0](layer.descriptor, Operands.of(network, layer)):
            return f"{_WHO} {found[1]}"
    enlarges = any(layer.type in _ENLARGING for layer in network.layers)
    saves = "--arena-cache-size" in options or "Size" in options
    return f"{_WHO} begins stripes of enlarged rows at odd rows" if enlarges and saves else ""


def legacy_hazard(network: Network) -> str:
    """Return why streams of the older code generator lack a wait; "" if nothing is known.

    A half-pixel resize repeats the first row and column of its input. Vela leaves them out of the input's size when it
    computes BLOCKDEP, and so overlooks that the last row and column are needed at once.
    """
    descriptors = [layer.descriptor for layer in network.layers if layer.type is LayerType.RESIZE_BILINEAR]
    repeats = any(isinstance(each, ResizeDescriptor) and each.half_pixel_centers for each in descriptors)
    return f"exact, and {_WHO} overlooks the last row and column of a half-pixel resize in BLOCKDEP" * repeats


def _narrow_bias(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    """Return whether int16 data meets an int32 bias; the rounding asked for is that of an int64 bias."""
    del descriptor
    bias = operands.inputs[2]
    return operands.input(0).dtype is DataType.INT16 and bias is not None and bias.dtype is DataType.INT32


def _single_step(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del operands
    return 1 in {descriptor.stride_h, descriptor.stride_w}


def _one_element(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    source, output = operands.input(0), operands.output
    count = math.prod(source.shape[axis] for axis in descriptor.axes)
    return count == 1 and source.quantization != output.quantization


def _has_states(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del descriptor, operands
    return True


def _is_identity(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del operands
    return list(descriptor.permutation) == sorted(descriptor.permutation)


def _has_batches(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del descriptor
    shape = max(operands.input(0).shape, operands.outputs[0].shape, key=len)
    return math.prod(shape[:-3]) > 1


_NARROW = (_narrow_bias, BY_ONE)
_BATCHES = (_has_batches, "mistakes the elements of all batches but the first")
_TABLE: Mapping[LayerType, tuple[Check, str]] = {
    LayerType.CONV_2D: _NARROW,
    LayerType.DEPTHWISE_CONV_2D: _NARROW,
    LayerType.FULLY_CONNECTED: _NARROW,
    LayerType.MEAN: (_one_element, "does not rescale a mean of one element"),
    LayerType.PACK: _BATCHES,
    LayerType.SPLIT: _BATCHES,
    LayerType.SPLIT_V: _BATCHES,
    LayerType.TRANSPOSE: (_is_identity, "exchanges axes where the permutation has them in place"),
    LayerType.TRANSPOSE_CONV: (_single_step, "pads a transposed convolution of stride 1 on the wrong side"),
    LayerType.UNPACK: _BATCHES,
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: (_has_states, "writes no states into raw files"),
}
"""For each type of layer, a condition and what is otherwise."""
