# SPDX-License-Identifier: Apache-2.0
"""A float network in the forms that a quantisation needs, and its quantised form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.formats import load, to_tflite
from ferrule.graph import Array, DataType, Graph, GraphEditor, Layer, LayerType, Rounding, TensorInfo, constant
from ferrule.network import Network
from ferrule.network.copying import network_of as network_from
from ferrule.network.rounding import with_rounding
from ferrule.optimizer.simplify import each_layer
from ferrule.quantization.biases import with_representable_biases
from ferrule.quantization.equalisation import Equalised, equalised
from ferrule.quantization.folding import folded
from ferrule.quantization.library import with_integers
from ferrule.quantization.own import refused, with_names, with_own_integers
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Range
from ferrule.quantization.rewriting import with_kernels


@frozen
class FloatForm:
    """A float network in the forms that a quantisation needs."""

    simple: Network
    """Simplified, with the layers' own names."""
    normal: Network
    """The same as a TensorFlow Lite file has it: with the same tensors, and layers that the format can express. In an
    equalised form, channels of this one have other factors."""

    @classmethod
    def of(cls, network: Network) -> FloatForm:
        """Return the forms of a network.

        Raises:
            FerruleError: it is quantised already, or has no input to calibrate with.
            UnsupportedError: it cannot be expressed in TensorFlow Lite.
        """
        _check_float(network)
        simple = network_from(_with_biases(folded(with_rounding(network, Rounding.TFLM))))
        return cls(simple=simple, normal=load(to_tflite(simple), network.name))

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The network's outputs."""
        return self.normal.outputs

    @property
    def names(self) -> dict[str, str]:
        """The names that users know of layers, by the tensor that they write."""
        return {name: layer.name for layer in self.simple.layers for name in layer.outputs}

    def equalised(self, peaks: Mapping[str, Array]) -> tuple[FloatForm, Equalised]:
        """Return the form with the same results whose channels are equalised, with what that has changed.

        `peaks` is as for `equalisation.equalised`.
        """
        found = equalised(self.normal, peaks)
        return replace(self, normal=found.network), found

    def quantized(
        self, ranges: Mapping[str, Range], own: Mapping[str, Precision], io: Precision
    ) -> tuple[Network, dict[str, str]]:
        """Return the network with the precisions of the layers of `normal`, and why layers stay in float, by tensor."""
        lacking = refused(self.normal, ranges, own)
        form = with_kernels(self.normal, ranges, own, without=lacking)
        asked = dict(form.precisions) | dict.fromkeys(
            refused(form.network, form.ranges, form.precisions), Precision.FLOAT
        )
        integers = with_integers(form.network, form.ranges, asked)
        integers = with_representable_biases(integers, form.network)
        by_tensor = {name: form.precisions[layer.name] for layer in form.network.layers for name in layer.outputs}
        pairs = [*zip(integers.inputs, self.normal.inputs, strict=True)]
        pairs += zip(integers.outputs, self.normal.outputs, strict=True)
        ends = {
            made.name: replace(info, dtype=io.dtype, quantization=ranges[info.name].quantization(io))
            for made, info in pairs
            if io is not Precision.FLOAT and info.name in ranges
        }
        integers, reasons = with_own_integers(integers, form.ranges, by_tensor, ends)
        integers.validate()
        return integers, reasons

    def with_own_outputs(self, integers: Network) -> Network:
        """Return a quantised network whose outputs have the names of the float network's."""
        ends = zip(integers.outputs, self.outputs, strict=True)
        return network_from(with_names(integers, {own.name: its.name for own, its in ends if own.name != its.name}))


@each_layer
def _with_biases(editor: GraphEditor, layer: Layer) -> None:
    """Give a convolution a bias of 0 if it has none: the library runs LiteRT, whose float kernel demands one."""
    channels = editor.info(layer.outputs[0]).shape[-1:]
    if layer.type is LayerType.CONV_2D and len(layer.present_inputs) == 2:
        bias = constant(TensorInfo(f"{layer.name}_bias", channels, DataType.FLOAT32), np.zeros(channels, np.float32))
        editor.replace_layer(replace(layer, inputs=(*layer.inputs[:2], editor.add_tensor(bias))))


def _check_float(network: Graph) -> None:
    """Raise FerruleError unless a network is one of float32 that can be calibrated."""
    for tensor in network.tensors:
        if tensor.info.quantization is not None:
            raise FerruleError(
                f"'{network.name}' is quantised already: tensor '{tensor.info.name}' is {tensor.info.dtype} with "
                f"{tensor.info.quantization}",
                hint="give the float32 model from before its quantisation",
            )
    if not any(info.dtype is DataType.FLOAT32 for info in network.inputs):
        kinds = ", ".join(f"'{info.name}' {info.dtype}" for info in network.inputs)
        raise FerruleError(f"'{network.name}' has the inputs {kinds}, expected one in float32 to calibrate with")
