# SPDX-License-Identifier: Apache-2.0
"""The operator contract, which every operator module of this package fulfils."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ferrule._frozen import frozen, positional
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, Kept, Layer, LayerType, Quantization, Rounding, Shape, TensorInfo
from ferrule.graph.lookup import Lookup
from ferrule.operators.activation import Activation
from ferrule.operators.sample import LayerSample

Arrays = Sequence[Array | None]
"""The data of a layer's inputs, in order; None for those that are absent, or that are not known."""
Infos = Sequence[TensorInfo | None]
"""The descriptions of a layer's inputs, in order; None for those that are absent."""
Shapes = tuple[Shape, ...]
"""The shapes of a layer's outputs."""


@positional
class Operands:
    """The tensor infos of a layer's inputs and outputs; None stands for an absent optional input."""

    inputs: tuple[TensorInfo | None, ...]
    outputs: tuple[TensorInfo, ...] = ()
    rounding: Rounding = Rounding.TFLM
    """The layer's rule."""

    @classmethod
    def of(cls, graph: Lookup, layer: Layer) -> Operands:
        """Return those of a layer of a graph."""
        return cls(inputs=graph.input_infos(layer), outputs=graph.output_infos(layer), rounding=layer.rounding)

    def input(self, index: int) -> TensorInfo:
        """Return the info of a required input; UnsupportedError if the input is absent."""
        info = self.inputs[index] if index < len(self.inputs) else None
        if info is None:
            raise UnsupportedError(f"input {index} is absent, expected a tensor")
        return info

    def required(self, positions: Iterable[int]) -> list[TensorInfo]:
        """Return the infos of required inputs; raises as `input`."""
        return [self.input(position) for position in positions]

    @property
    def source(self) -> TensorInfo:
        """The first input."""
        return self.input(0)

    @property
    def output(self) -> TensorInfo:
        """The first output."""
        return self.outputs[0]

    @property
    def ends(self) -> tuple[TensorInfo, TensorInfo]:
        """The first input and the first output."""
        return self.source, self.output

    @property
    def pair(self) -> tuple[TensorInfo, TensorInfo]:
        """The first two inputs."""
        return self.source, self.input(1)


def values_of(graph: Lookup, layer: Layer) -> tuple[Array | None, ...]:
    """Return the data of a layer's constant inputs; None for those that are absent or computed at run time."""
    return tuple(None if name is None else graph.tensor(name).data for name in layer.inputs)


def optional_array(arrays: Arrays, index: int) -> Array | None:
    """Return an optional input array; None if it is absent."""
    return arrays[index] if index < len(arrays) else None


def required_array(arrays: Arrays, index: int) -> Array:
    """Return a required input array; UnsupportedError if it is absent."""
    array = arrays[index]
    if array is None:
        raise UnsupportedError(f"input {index} is absent, expected a tensor")
    return array


def required_arrays(arrays: Arrays, positions: Iterable[int]) -> list[Array]:
    """Return required input arrays; raises as `required_array`."""
    return [required_array(arrays, position) for position in positions]


def no_macs(_: Descriptor, __: Operands) -> int:
    """Return 0: the multiply-accumulates of an operator that is counted as having none."""
    return 0


def _any_values(_: Descriptor, __: Operands, ___: Arrays) -> None:
    """Accept all values."""


def keeps_nothing(_: Descriptor, __: Operands) -> Sequence[Kept]:
    """Return the states of an operator without any: none."""
    return ()


def same_shape(_: Descriptor, operands: Operands) -> Shapes:
    """Return the shape of the first input."""
    return (operands.source.shape,)


def always(_: Descriptor, __: Operands) -> bool:
    """Return True: each layer of such an operator is the identity if it changes no type, shape and quantisation."""
    return True


def never(_: Descriptor, __: Operands) -> bool:
    """Return False: no layer of such an operator is looked upon as the identity."""
    return False


@frozen
class Arithmetic:
    """How exactly the code computes floats whose results are judged."""

    unit: float = 2.0**-24
    """The unit roundoff: the largest relative error of one operation; 2**-24 for float32."""
    spare: float = 0.0
    """Units in the last place by which a function may be off beyond the error of Ferrule's own C."""
    smallest: float = 0.0
    """The smallest positive number of the type of the arithmetic; 0.0 for that of the layer's outputs."""


OWN_CODE = Arithmetic()
"""That of Ferrule's own C without contraction."""
OTHER_CODE = Arithmetic(spare=8.0)
"""That of C built with other flags, and of other libraries' functions, such as OpenCL's."""

EVERY_INT8: Array = np.arange(-128, 128, dtype=np.int8)
"""The inputs of a table of 256 results."""


def look_up(table: Array, data: Array) -> Array:
    """Return the entries of such a table for int8 values."""
    return np.asarray(table[data.astype(np.intp) + 128])


Kernel = Callable[[Any, Operands, Arrays], list[Array]]
"""(descriptor, operands, input arrays) -> output arrays."""


def of_one(compute: Callable[[Any, Operands, Array], Array]) -> Kernel:
    """Return the kernel of an operator that computes one array of its first input."""
    return lambda descriptor, operands, arrays: [compute(descriptor, operands, required_array(arrays, 0))]


@frozen(eq=False)
class Evaluation:
    """One run of a kernel, whose results those of other code are compared with."""

    descriptor: Any
    operands: Operands
    kernel: Kernel
    inputs: Arrays
    errors: Arrays
    """By input: how far each element of the other code's input may be away, as float64; None if they are equal."""
    outputs: Sequence[Array]
    arithmetic: Arithmetic = OWN_CODE

    @property
    def is_exact(self) -> bool:
        """Whether all inputs are equal."""
        return all(error is None for error in self.errors)


Bound = Callable[[Evaluation], list[Array]]
"""Returns, by output, how far each element of the other code's result may be away, as float64; infinity for unknown."""


@frozen
class Operator:
    """One row of the operator table: the sheet of an operator.

    The callables take the operator's own descriptor; they are pure and never modify their arguments. The traits below
    `rules` are what other packages ask for, by `table.having`, instead of lists of layer types.
    """

    descriptor: type[Descriptor]
    type: LayerType
    check: Callable[[Any, Operands], None]
    """(descriptor, operands): UnsupportedError names the tensor, type or parameter that the kernel refuses.

    Call `accept` or `accept_layer` instead, which check the rule, too.
    """
    kernel: Kernel
    """(descriptor, operands, input arrays) -> output arrays; the reference that every backend must match."""
    shapes: Callable[[Any, Operands], Shapes] = same_shape
    """(descriptor, operands without outputs) -> output shapes; UnsupportedError or ModelError names the mismatch.

    Call `infer` instead.
    """
    bound: Bound | None = None
    """The bound of float results, and of results for inputs that differ; None stands for `error_bound.monotone`."""
    check_values: Callable[[Any, Operands, Arrays], None] = _any_values
    """(descriptor, operands, data of the constant inputs, None for the others): UnsupportedError names the tensor that
    must be a constant, or the constants with which results would be undefined.

    So this is the one statement of what may come from run time: the numpy kernel and the C kernels compute all that it
    accepts, and a file is read, inspected and generated, or refused, by it.
    """
    macs: Callable[[Any, Operands], int] = no_macs
    """(descriptor, operands) -> multiply-accumulates of one run; `no_macs` if the operator is counted as having none.
    """
    reads: Callable[[Any, Operands], int] | None = None
    """(descriptor, operands) -> elements that one run reads, if it reads operands several times and multiplies none."""
    sample: Callable[[LayerSample], Descriptor] | None = None
    """Draws a random layer for backend tests, and returns its descriptor; None for layers that the runtime runs."""
    rules: frozenset[Rounding] = frozenset({Rounding.TFLM})
    """The rules that the kernel computes; those besides TFLM for outputs of 8 bits only."""
    elementwise: bool = False
    """Whether each element is computed from those at its place in the inputs, all of which broadcast to one shape."""
    moves: bool = False
    """Whether the outputs consist of elements of the inputs, and of one value that the layer adds."""
    view: bool = False
    """Whether the output has the bytes of the input in another shape."""
    indices: tuple[int, ...] = ()
    """The positions of inputs that are int32 indices, by which the operator moves the elements of others."""
    channel_axis: int | None = None
    """The axis of the weights (input 1) that has the channels of the output; None for operators without weights."""
    clamp: Activation | None = None
    """The activation that the operator computes if the output has the scale and the zero point of the input."""
    is_identity: Callable[[Any, Operands], bool] = never
    """(descriptor, operands) -> whether the output has the elements of the first input in their order, if both tensors
    have the same type, shape and quantisation."""
    prescribed: Mapping[DataType, Quantization] = field(default_factory=dict)
    """The output's quantisation that TensorFlow Lite prescribes, by the type of the data."""
    states: Callable[[Any, Operands], Sequence[Kept]] = keeps_nothing
    """(descriptor, operands: the inputs before the states) -> the states whose shapes and types follow from these
    inputs. They are the last inputs, and their new values the last outputs."""

    @property
    def weighted(self) -> bool:
        """Whether it sums products of data (input 0) and weights (input 1), plus a bias (input 2)."""
        return self.channel_axis is not None

    @property
    def transfers(self) -> bool:
        """Whether the runtime itself runs such layers, which the optimizer inserts; they leave values unchanged."""
        return self.sample is None

    @property
    def linear(self) -> bool:
        """Whether the work of the kernel is proportional to the size of its tensors."""
        return self.macs is no_macs and self.reads is None

    def infer(self, descriptor: Descriptor, inputs: Infos) -> Shapes:
        """Return the shapes of the outputs; UnsupportedError or ModelError names the mismatch."""
        return self.shapes(descriptor, Operands(tuple(inputs)))

    def accept(self, descriptor: Descriptor, operands: Operands) -> None:
        """Check a layer; UnsupportedError names the rule, tensor, type or parameter that the kernel refuses."""
        self.check_rule(operands)
        self.check(descriptor, operands)

    def accepts(self, descriptor: Descriptor, operands: Operands) -> bool:
        """Return whether `accept` takes the layer; what rewrites layers must never make one unsupported."""
        try:
            self.accept(descriptor, operands)
        except FerruleError:
            return False
        return True

    def accept_layer(self, graph: Lookup, layer: Layer) -> None:
        """Check a layer of a graph with the values of its constants; raises as `accept`, also for a wrong value."""
        operands = Operands.of(graph, layer)
        self.accept(layer.descriptor, operands)
        self.check_values(layer.descriptor, operands, values_of(graph, layer))

    def check_rule(self, operands: Operands) -> None:
        """Refuse a rule that the kernel does not compute."""
        rule = operands.rounding
        if rule is Rounding.TFLM:
            return
        if rule not in self.rules:
            raise UnsupportedError(
                f"{self.type} has no kernel for {rule.phrase} ('{rule}'), expected {' or '.join(sorted(self.rules))}"
            )
        if operands.output.dtype not in {DataType.INT8, DataType.UINT8}:
            raise UnsupportedError(
                f"tensor '{operands.output.name}' is {operands.output.dtype}, {rule.phrase} ('{rule}') is for 8 bits"
            )
