# SPDX-License-Identifier: Apache-2.0
"""A network of one layer whose output shapes are inferred by the operator itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.graph import Array, DataType, Descriptor, Layer, LayerType, Quantization, Rounding, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.table import OPERATORS


def tensor(name: str, shape: Shape, dtype: DataType, scale: float | None = None, zero_point: int = 0) -> TensorInfo:
    """Return a tensor's description; it is quantised if a scale is given."""
    quantization = None if scale is None else Quantization.of(scale, zero_point)
    return TensorInfo(name, shape, dtype, quantization=quantization)


def layer_network(
    type_: LayerType,
    descriptor: Descriptor,
    inputs: Sequence[TensorInfo],
    output: Quantization | None = None,
    constants: Mapping[int, Array] | None = None,
    output_dtype: DataType | None = None,
    rounding: Rounding = Rounding.TFLM,
) -> Network:
    """Return a network of one layer; `constants` holds the data of those inputs that are constants."""
    network = Network("case")
    known = constants or {}
    for index, info in enumerate(inputs):
        if index in known:
            network.add_constant(info, known[index])
        else:
            network.add_input(info)
    shapes = OPERATORS[type_].infer(descriptor, inputs)
    outputs = [
        TensorInfo(f"output_{i}", shape, output_dtype or inputs[0].dtype, quantization=output)
        for i, shape in enumerate(shapes)
    ]
    layer = Layer(
        "layer",
        type_,
        descriptor,
        inputs=tuple(info.name for info in inputs),
        outputs=tuple(info.name for info in outputs),
        rounding=rounding,
    )
    network.add_layer(layer, outputs)
    network.set_outputs(info.name for info in outputs)
    return network
