# SPDX-License-Identifier: Apache-2.0
"""The functional model on its own: a file of Vela, inputs, and what the NPU makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.compiled import CompiledStream, StreamTensor, read_npz
from ferrule.backends.ethos_u.instance import StreamInstance
from ferrule.backends.ethos_u.npu import Step, prepared, stepped
from ferrule.backends.ethos_u.stream import operations
from ferrule.errors import InputError, unknown_name
from ferrule.graph import Array


@frozen(eq=False)
class StreamRun:
    """What one execution of a stream did."""

    outputs: Mapping[str, Array]
    """Stored values by name, in the shapes of `EthosUStream.outputs`."""
    steps: tuple[Step, ...]
    """The operations in the order of the stream."""

    @property
    def macs(self) -> int:
        """Multiplications of inputs with weights, without padding."""
        return sum(step.macs for step in self.steps)

    @property
    def hazards(self) -> tuple[str, ...]:
        """Accesses that the stream does not order; none unless the stream was made with `check_hazards`."""
        return tuple(
            f"word {step.operation.word_offset} ({step.operation.name}): {hazard}"
            for step in self.steps
            for hazard in step.hazards
        )


class EthosUStream:
    """A stream that Vela compiled for Ethos-U55 or U65, on the functional model of the NPU.

    The results are those of TensorFlow Lite Micro's kernels, bit for bit, with the exceptions in docs/ethos_u.md.
    States keep their values from one execution to the next.
    """

    def __init__(self, stream: CompiledStream, *, check_hazards: bool = False) -> None:
        """With `check_hazards`, executions note accesses that would depend on the timing of a real NPU."""
        self._instance = StreamInstance(stream, check_hazards=check_hazards)

    @classmethod
    def read(cls, source: Path | str | bytes, *, check_hazards: bool = False) -> EthosUStream:
        """Return the stream of a file that `vela --output-format raw` wrote, given by its path or its bytes.

        Raises:
            UnsupportedError: the stream is for an NPU that is not supported, such as Ethos-U85.
            FerruleError: the file cannot be read, is damaged, or is no such file.
        """
        return cls(read_npz(source), check_hazards=check_hazards)

    @property
    def stream(self) -> CompiledStream:
        """The stream with its configuration, its data and the places of its tensors."""
        return self._instance.stream

    @property
    def inputs(self) -> tuple[StreamTensor, ...]:
        """The inputs, in the order of the model."""
        return self.stream.inputs

    @property
    def outputs(self) -> tuple[StreamTensor, ...]:
        """The outputs, in the order of the model."""
        return self.stream.outputs

    @property
    def states(self) -> tuple[StreamTensor, ...]:
        """The tensors that keep their values from one execution to the next."""
        return self.stream.states

    def operations(self) -> tuple[Step, ...]:
        """Return the operations of the stream, which are not executed.

        Raises:
            StreamError: the stream is malformed.
            UnsupportedModeError: it asks for what Vela never emits.
        """
        found = operations(self._instance.payload.words)
        return tuple(stepped(each, prepared(each, self.stream.configuration)) for each in found)

    def reset(self, states: Mapping[str, Array] | None = None) -> None:
        """Set states, by name; the others become 0.

        A model's states begin as their zero points. Vela's file has these in a form that can run code, which is not
        read.

        Raises:
            InputError: a name, a shape or a type does not fit.
        """
        given = _named(states or {}, self.states, "state", complete=False)
        for tensor in self.states:
            self._instance.write(tensor, given.get(tensor.name, np.zeros(tensor.shape, tensor.dtype.numpy)))

    def run(self, inputs: Mapping[str, Array] | Sequence[Array]) -> StreamRun:
        """Execute the stream once, with stored values by name or in the order of the inputs.

        An array may have any shape with the extents of the input, apart from ones, and unsigned elements.

        Raises:
            InputError: an input is missing, or has another shape or type.
            StreamError: the stream is malformed.
            UnsupportedModeError: it asks for what Vela never emits.
            NpuBusError: it accesses memory that does not exist.
        """
        given = _named(inputs, self.inputs, "input", complete=True)
        for tensor in self.inputs:
            self._instance.write(tensor, given[tensor.name])
        steps = tuple(self._instance.steps())
        outputs = {
            tensor.name: self._instance.place(tensor).view(tensor.dtype.numpy).reshape(plain_shape(tensor)).copy()
            for tensor in self.outputs
        }
        return StreamRun(outputs=outputs, steps=steps)


def _named(
    arrays: Mapping[str, Array] | Sequence[Array], tensors: Sequence[StreamTensor], what: str, *, complete: bool
) -> dict[str, Array]:
    """Return arrays by name; InputError if a name, a shape or a type does not fit, or one is missing."""
    names = [tensor.name for tensor in tensors]
    if not isinstance(arrays, Mapping):
        if len(arrays) != len(tensors):
            raise InputError(f"there are {len(arrays)} arrays, expected {len(tensors)}: {', '.join(names)}")
        arrays = dict(zip(names, arrays, strict=True))
    for name in arrays:
        if name not in names:
            raise unknown_name(what, name, names)
    missing = [name for name in names if name not in arrays] if complete else []
    if missing:
        raise InputError(f"{what} '{missing[0]}' is missing", hint=f"the stream has {', '.join(names)}")
    return {each.name: _checked(each, np.asarray(arrays[each.name])) for each in tensors if each.name in arrays}


def _checked(tensor: StreamTensor, array: Array) -> Array:
    if array.dtype.kind not in "iu" or array.dtype.itemsize != tensor.dtype.size_bytes:
        raise InputError(
            f"'{tensor.name}' is {array.dtype}, expected {tensor.dtype}",
            hint="inputs are stored values; quantise real ones with the scale and the zero point of the model",
        )
    if array.shape != tensor.shape and [n for n in array.shape if n != 1] != [n for n in tensor.shape if n != 1]:
        raise InputError(f"'{tensor.name}' has the shape {list(array.shape)}, expected {list(plain_shape(tensor))}")
    return array


def plain_shape(tensor: StreamTensor) -> tuple[int, ...]:
    """Return a tensor's shape with one leading 1, the batch: Vela's files put as many in front as fill six axes."""
    first = next((index for index, extent in enumerate(tensor.shape) if extent != 1), len(tensor.shape))
    return (1, *tensor.shape[first:])
