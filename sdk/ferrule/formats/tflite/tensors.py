# SPDX-License-Identifier: Apache-2.0
"""Checks the tensors of a file and returns their descriptions and the data of the constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import numpy as np

from ferrule.budget import hold
from ferrule.errors import ModelError, UnsupportedError, place
from ferrule.formats.limits import MAX_RANK, MAX_TENSOR_BYTES
from ferrule.formats.tflite.records import SubgraphRecord, TensorRecord
from ferrule.graph import Array, DataType, Quantization, Shape, TensorInfo
from ferrule.graph.tensor import read_only

UINT8, INT8 = 3, 9
"""The types' numbers in the schema."""
_TYPES: Mapping[int, DataType] = {
    0: DataType.FLOAT32,
    1: DataType.FLOAT16,
    2: DataType.INT32,
    UINT8: DataType.UINT8,
    4: DataType.INT64,
    6: DataType.BOOL,
    7: DataType.INT16,
    INT8: DataType.INT8,
    12: DataType.UINT64,
    15: DataType.UINT32,
    17: DataType.INT8,
}
_INT4 = 17
"""Two elements in a byte, the first in the low half; networks have them as int8."""
TYPE_NUMBERS: Mapping[DataType, int] = {dtype: number for number, dtype in _TYPES.items() if number != _INT4}
"""The values of the schema's enum TensorType."""
_CONSTANT: Mapping[int, tuple[str, str]] = {
    1: ("float16", "convert the model with float32 activations"),
    _INT4: ("int4", "convert the model with int8 activations"),
}
"""Types that only constants may have: name and hint."""
_REFUSED_TYPES: Mapping[int, str] = {
    5: "string",
    8: "complex64",
    10: "float64",
    11: "complex128",
    13: "resource",
    14: "variant",
    16: "uint16",
    18: "bfloat16",
}
DENSE = "convert the model without the optimisation for sparsity (tf.lite.Optimize.EXPERIMENTAL_SPARSITY)"
"""The hint for sparse weights."""
_FIXED = "convert the model with inputs of a fixed shape (keras: batch_shape; tf.function: input_signature)"
_NUMBERS = "convert the part of the model that has only numbers, and prepare the text outside of the model"
_REAL_BYTES = 12
"""What an element of an integer takes as float32, with the float64 from which it is rounded."""
_LEAST_SCALE = float(np.finfo(np.float32).smallest_normal)
_ZEROED_BYTES = 2
"""The size of the largest elements that a scale of 0 makes 0; accumulators have the scale of the products."""
_EMPTY = ((0,), (0, 2))
"""Shapes of parameters without elements: an empty vector, and the paddings of a scalar."""


class Tensors:
    """The tensors of one subgraph; each is checked when it is first requested."""

    def __init__(self, subgraph: SubgraphRecord) -> None:
        self._subgraph = subgraph
        self._infos: dict[int, TensorInfo] = {}
        self._arrays: dict[tuple[int, int], Array] = {}
        """By number of the buffer and type of the schema."""
        self._provided: dict[int, Callable[[], Array]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tensors."""
        return tuple(record.name for record in self._subgraph.tensors)

    def __contains__(self, index: int) -> bool:
        return 0 <= index < len(self._subgraph.tensors)

    def record(self, index: int) -> TensorRecord:
        """Return a tensor as stored in the file; ModelError if the index is out of range."""
        if index not in self:
            raise ModelError(f"tensor {index} does not exist, the model has {len(self._subgraph.tensors)}")
        return self._subgraph.tensors[index]

    def info(self, index: int) -> TensorInfo:
        """Return the checked description of a tensor.

        Raises:
            ModelError: its shape, buffer or quantisation is malformed.
            UnsupportedError: networks do not support its type, its quantisation or its kind of storage.
        """
        if index not in self._infos:
            record = self.record(index)
            with _named(record):
                dtype, shape = _checked(record)
                if record.type in _CONSTANT and not self.is_constant(index):
                    name, hint = _CONSTANT[record.type]
                    raise UnsupportedError(f"it is {name} and computed at run time, expected a constant", hint=hint)
                quantization = _quantization(record, dtype, shape, constant=self.is_constant(index))
            self._infos[index] = TensorInfo(record.name, shape, dtype, quantization=quantization)
        return self._infos[index]

    def dequantize(self, index: int) -> None:
        """Give a quantised constant as float32 from now on, real = scale * (stored - zero point); raises like `data`.

        ModelError if it has no quantisation.
        """
        info = self.info(index)
        if info.dtype is DataType.FLOAT32:
            return
        values = real_values(info, self.data(index))
        self.replace(index, TensorInfo(info.name, info.shape, DataType.FLOAT32), values)

    def replace(self, index: int, info: TensorInfo, data: Array | None) -> None:
        """Give a tensor another description and, if it is a constant, other data from now on."""
        self._infos[index] = info
        if data is not None:
            shared = read_only(data)
            self.provide(index, lambda: shared)

    def is_constant(self, index: int) -> bool:
        """Whether the file contains the tensor's data, or it can be computed from such data."""
        record = self.record(index)
        with _named(record):
            return index in self._provided or self._buffer(record) is not None

    def provide(self, index: int, data: Callable[[], Array]) -> None:
        """Make a tensor a constant; `data` returns its read-only data, and is called when it is needed."""
        self._provided[index] = data

    def data(self, index: int) -> Array:
        """Return a constant's data, read-only; raises like `info`, and ModelError if the tensor is not a constant."""
        if index in self._provided:
            return self._provided[index]()
        record = self.record(index)
        with _named(record):
            data = self._data(record, _data_type(record), _static_shape(record))
        if 0.0 in record.quantization.scales:
            data = _with_zeros(self.info(index), np.array(record.quantization.scales) == 0, data)
        return data

    def stored_bytes(self, index: int) -> Array:
        """Return the bytes of a constant of the file, whatever its type; ModelError if it is none."""
        record = self.record(index)
        with _named(record):
            return self._present(record)

    def integers(self, index: int) -> Array:
        """Return a parameter's int32 or int64 elements; an empty vector has no buffer but is a constant, too.

        Raises:
            UnsupportedError: the tensor is computed at run time.
            ModelError: its elements are not integers.
        """
        record = self.record(index)
        with _named(record):
            dtype = _data_type(record)
            if dtype not in {DataType.INT32, DataType.INT64}:
                raise ModelError(f"it is {dtype}, expected int32 or int64")
            if index in self._provided:
                return self._provided[index]()
            if self._buffer(record) is None:
                if record.shape in _EMPTY:
                    return np.zeros(record.shape, np.int64)
                raise UnsupportedError("it is computed at run time, expected a constant")
            return self._data(record, dtype, _static_shape(record))

    def has_integers(self, index: int) -> bool:
        """Whether `integers` can return elements, since the tensor is a constant or an empty vector."""
        return self.is_constant(index) or self.record(index).shape in _EMPTY

    def _buffer(self, record: TensorRecord) -> Array | None:
        if record.buffer >= len(self._subgraph.buffers):
            raise ModelError(f"its buffer is number {record.buffer}, but the model has {len(self._subgraph.buffers)}")
        return self._subgraph.buffers[record.buffer]

    def _present(self, record: TensorRecord) -> Array:
        buffer = self._buffer(record)
        if buffer is None:
            raise ModelError("it has no data, expected a constant")
        return buffer

    def _data(self, record: TensorRecord, dtype: DataType, shape: Shape) -> Array:
        buffer = self._present(record)
        elements, packed = math.prod(shape), record.type == _INT4
        expected = (elements + 1) // 2 if packed else elements * dtype.size_bytes
        if buffer.nbytes != expected:
            name = "int4" if packed else dtype
            raise ModelError(f"its buffer has {buffer.nbytes} bytes, expected {expected} for {name}{list(shape)}")
        key = (record.buffer, record.type)
        if key not in self._arrays:
            self._arrays[key] = _halves(buffer) if packed else _typed(buffer, dtype)
        return self._arrays[key][:elements].reshape(shape)


def real_values(info: TensorInfo, stored: Array) -> Array:
    """Return float16 or quantised elements as float32, real = scale * (stored - zero point), rounded once.

    Raises:
        ModelError: it has neither type.
    """
    if info.dtype is not DataType.FLOAT16 and info.quantization is None:
        raise ModelError(f"tensor '{info.name}': it has no scale, expected quantised weights")
    hold(_REAL_BYTES * info.elements, f"tensor '{info.name}' in float32")
    return read_only(info.dequantize(stored).reshape(info.shape))


def _typed(buffer: Array, dtype: DataType) -> Array:
    """Return the buffer's bytes as elements, as a view if alignment and byte order allow it."""
    stored = buffer.view(dtype.numpy.newbyteorder("<"))
    if dtype is DataType.BOOL and buffer.max() > 1:
        raise ModelError(f"its buffer has the byte {buffer.max()}, expected 0 or 1 for bool")
    if not stored.flags.aligned or not stored.dtype.isnative:
        return read_only(stored.astype(dtype.numpy))
    return stored


def _halves(buffer: Array) -> Array:
    """Return the signed halves of the bytes as int8, the low half of each byte first."""
    hold(2 * buffer.nbytes, "its buffer of int4 as int8")
    return read_only(np.stack([buffer << 4, buffer & 0xF0], axis=-1).reshape(-1).view(np.int8) >> 4)


def _named(record: TensorRecord) -> AbstractContextManager[None]:
    """Name a tensor in errors."""
    return place(f"tensor '{record.name}'")


def _checked(record: TensorRecord) -> tuple[DataType, Shape]:
    """Return the type and the shape of a tensor after checking that a network can contain it."""
    dtype = _data_type(record)
    if record.is_sparse:
        raise UnsupportedError("it is sparse, expected a dense tensor", hint=DENSE)
    shape = _static_shape(record)
    if math.prod(shape) * dtype.size_bytes > MAX_TENSOR_BYTES:
        raise ModelError(f"shape {list(shape)} of {dtype} takes more than {MAX_TENSOR_BYTES} bytes")
    return dtype, shape


def _data_type(record: TensorRecord) -> DataType:
    dtype = _TYPES.get(record.type)
    if dtype is None:
        name = _REFUSED_TYPES.get(record.type)
        if name is None:
            raise ModelError(f"its type is number {record.type}, which the schema does not have")
        raise UnsupportedError(
            f"it is {name}, which is not supported; expected {', '.join(dict.fromkeys(_TYPES.values()))}",
            hint=_NUMBERS if name == "string" else None,
        )
    return dtype


def _static_shape(record: TensorRecord) -> Shape:
    """Return the shape, with an unknown batch size read as 1."""
    shape = record.shape
    if len(shape) > MAX_RANK:
        raise UnsupportedError(f"it has {len(shape)} dimensions, expected at most {MAX_RANK}")
    if shape and shape[0] == -1:
        shape = (1, *shape[1:])
    if -1 in shape:
        raise UnsupportedError(f"its shape {list(shape)} is dynamic, expected a fixed one", hint=_FIXED)
    if any(extent <= 0 for extent in shape):
        raise ModelError(f"its shape is {list(shape)}, expected positive extents")
    return shape


def check_signature(record: TensorRecord) -> None:
    """Refuse an input with an unknown extent other than the batch size."""
    if -1 in record.shape_signature[1:]:
        raise UnsupportedError(
            f"tensor '{record.name}': its shape {list(record.shape_signature)} is dynamic, "
            "expected fixed extents except for the batch",
            hint=_FIXED,
        )


def _quantization(record: TensorRecord, dtype: DataType, shape: Shape, *, constant: bool) -> Quantization | None:
    """Return the quantisation; a constant's scale of 0, with which every value is 0, becomes the least one."""
    quantization = record.quantization
    if quantization.custom:
        raise UnsupportedError("it has a custom quantisation, expected scales and zero points")
    if not quantization.scales or not dtype.is_quantizable:
        return None
    scales = quantization.scales
    if constant:
        scales = tuple(scale or _LEAST_SCALE for scale in scales)
    zero_points = quantization.zero_points
    if len(zero_points) == 1:
        zero_points *= len(scales)
    # One dimension has one axis. Converters write others for biases, and TensorFlow Lite Micro never reads these.
    axis = quantization.axis if len(scales) > 1 and len(shape) != 1 else 0
    return Quantization(scales=scales, zero_points=zero_points, axis=axis)


def _with_zeros(info: TensorInfo, unscaled: Array, data: Array) -> Array:
    """Return a constant's data with the zero point where the scale is 0: these elements are 0 with any other scale."""
    quantization = info.quantization
    if quantization is None or data.itemsize > _ZEROED_BYTES:
        return data
    shape = [1] * data.ndim
    if quantization.per_channel:
        shape[quantization.axis] = -1
    zeros = np.array(quantization.zero_points).astype(data.dtype)
    return read_only(np.where(unscaled.reshape(shape), zeros.reshape(shape), data))
