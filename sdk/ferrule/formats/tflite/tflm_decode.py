# SPDX-License-Identifier: Apache-2.0
"""Decodes the constants that TensorFlow Lite Micro's custom operator TFLM_DECODE decodes in every run.

Each output has two inputs: the encoded bytes, and the ancillary bytes, a header of 16 bytes and tables. Bits of encoded
bytes are taken from the highest on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ferrule._frozen import positional
from ferrule.errors import ModelError, UnsupportedError, place
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.records import QuantizationRecord
from ferrule.graph import Array, DataType, TensorInfo

TFLM_DECODE = "TFLM_DECODE"
"""The operator's custom code."""
_HEADER_BYTES = 16
_TYPE, _VERSION, _METHOD_VERSION, _PARAMETERS, _STRIDE = 0, 1, 4, 5, 6
"""Positions in the header; the last two depend on the type."""
_LOOK_AHEAD = 16
"""The most bits that are read at once."""
_TYPES = frozenset({DataType.BOOL, DataType.FLOAT32, DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64})


@positional
class _Output:
    """An output, and its quantisation in the file, which has channels for types that networks do not quantise, too."""

    info: TensorInfo
    stored: QuantizationRecord


def decoded(node: Node) -> list[Array]:
    """Return the outputs of a TFLM_DECODE.

    Raises:
        ModelError: the encoded bytes or the ancillary bytes are malformed.
        UnsupportedError: TensorFlow Lite Micro does not decode this method or this type.
    """
    return [_decoded(node, position) for position in range(len(node.record.outputs))]


def check_decode(node: Node) -> None:
    """Check the number of inputs, and that they are constants; raises like `decoded`."""
    count = len(node.record.outputs)
    node.check_arity(range(2 * count, 2 * count + 1), range(1, max(count, 1) + 1))
    for position in range(2 * count):
        if not node.is_constant(position):
            raise UnsupportedError(f"input {position} is computed at run time, expected a constant")


def _decoded(node: Node, position: int) -> Array:
    output = node.output(position)
    encoded, ancillary = node.stored_bytes(2 * position), node.stored_bytes(2 * position + 1)
    with place(f"output '{output.name}'"):
        if ancillary.size < _HEADER_BYTES:
            raise ModelError(f"its ancillary data has {ancillary.size} bytes, expected a header of {_HEADER_BYTES}")
        header, tables = ancillary[:_HEADER_BYTES].tolist(), ancillary[_HEADER_BYTES:]
        if header[_VERSION] != 1:
            raise UnsupportedError(
                f"byte {_VERSION} of its ancillary data, the version, is {header[_VERSION]}, expected 1"
            )
        method = _METHODS.get(header[_TYPE])
        if method is None:
            raise UnsupportedError(
                f"byte {_TYPE} of its ancillary data, the method, is {header[_TYPE]}, "
                "expected 0 (look-up table), 1 (Huffman) or 2 (pruning)"
            )
        if header[_METHOD_VERSION] != 1:
            raise UnsupportedError(
                f"byte {_METHOD_VERSION} of its ancillary data, the method's version, is {header[_METHOD_VERSION]}, "
                "expected 1"
            )
        if output.dtype not in _TYPES:
            raise UnsupportedError(f"it is {output.dtype}, expected {', '.join(sorted(_TYPES))}")
        data = method(_Output(output, node.output_quantization(position)), header, encoded, tables)
        if output.dtype is DataType.BOOL and data.view(np.uint8).max() > 1:
            raise ModelError(f"it has the byte {data.view(np.uint8).max()}, expected 0 or 1 for bool")
        result: Array = data
        return result.reshape(output.shape)


def _look_up(output: _Output, header: list[int], encoded: Array, tables: Array) -> Array:
    """Decode indices of 1 to 7 bits into a table, or into one table per channel."""
    width, stride = header[_PARAMETERS] & 7, header[_STRIDE]
    if width == 0:
        raise ModelError(f"byte {_PARAMETERS} of its ancillary data, the width of an index, is 0, expected 1 to 7")
    bits = _bits(encoded, output.info.elements * width).reshape(-1, width)
    indices = bits @ (1 << np.arange(width - 1, -1, -1))
    places: Array = _channels(output) * stride + indices
    values = _values(output.info, tables)
    if places.max() >= values.size:
        raise ModelError(f"it has the index {places.max()}, but its tables have {values.size} elements")
    return np.asarray(values[places])


def _pruned(output: _Output, header: list[int], encoded: Array, tables: Array) -> Array:
    """Decode a bit per element: 1 for the next value of the table, 0 for the zero point."""
    del header
    zero_points = np.array(output.stored.zero_points or (0,))
    if output.info.dtype is not DataType.INT8 and zero_points.any():
        raise UnsupportedError(
            f"it is {output.info.dtype} with a zero point that is not 0, expected 0 for pruned elements"
        )
    if zero_points.size not in {1, len(output.stored.scales)}:
        raise ModelError(f"it has {zero_points.size} zero points, expected 1, or one for each of its scales")
    given = _bits(encoded, output.info.elements).astype(bool)
    values = _values(output.info, tables)
    if values.size < given.sum():
        raise ModelError(f"its table has {values.size} elements, expected {given.sum()}")
    result = zero_points[_channels(output) if zero_points.size > 1 else 0 * _channels(output)]
    result = np.asarray(result, output.info.dtype.numpy)
    result[given] = values[: given.sum()]
    return result


def _huffman(output: _Output, header: list[int], encoded: Array, tables: Array) -> Array:
    """Decode words of several bits with chained tables.

    An entry with its highest bit set is a symbol, and its four bits below say how many of the bits read last belong to
    it. Another entry says how many more bits to read, minus 1, and how far the next table is from this entry.
    """
    wide = bool(header[_PARAMETERS] & 1)
    if output.info.dtype is not DataType.INT8 and (not wide or output.info.dtype is not DataType.INT16):
        raise UnsupportedError(f"it is {output.info.dtype}, expected int8, or int16 with tables of 32 bits")
    entries = tables[: tables.size // 4 * 4].view("<u4") if wide else tables[: tables.size // 2 * 2].view("<u2")
    table, first = entries.tolist(), (header[_PARAMETERS] >> 4) + 1
    found, count_shift, value_mask = (1 << 31, 27, (1 << 27) - 1) if wide else (1 << 15, 11, (1 << 11) - 1)
    total = 8 * encoded.size
    # an entry may ask for more bits than there are, and put them back
    padded = np.append(encoded, np.zeros(8, np.uint8)).astype(np.int64)
    words = (padded[:-4] << 24 | padded[1:-3] << 16 | padded[2:-2] << 8 | padded[3:-1]).tolist()
    result: list[int] = []
    at = 0
    for _ in range(output.info.elements):
        bits, place_ = first, 0
        while True:
            if at + bits > total + _LOOK_AHEAD:
                raise ModelError(f"its {encoded.size} bytes end before element {len(result)} of {output.info.elements}")
            place_ += words[at // 8] >> 32 - at % 8 - bits & (1 << bits) - 1
            at += bits
            if place_ >= len(table):
                raise ModelError(
                    f"element {len(result)} needs entry {place_}, but its tables have {len(table)} entries"
                )
            entry = table[place_]
            count = entry >> count_shift & 15
            if entry & found:
                break
            bits, place_ = count + 1, place_ + (entry & value_mask)
        at -= max(bits - count, 0)
        if at > total:
            raise ModelError(f"its {encoded.size} bytes end before element {len(result)} of {output.info.elements}")
        result.append(entry)
    mask = 0xFF if output.info.dtype is DataType.INT8 else 0xFFFF
    unsigned = np.array(result, np.int64) & mask
    return unsigned.astype(np.uint8 if mask == 0xFF else np.uint16).view(output.info.dtype.numpy)


def _bits(encoded: Array, count: int) -> Array:
    """Return the first bits of the bytes, from the highest of each byte on."""
    if 8 * encoded.size < count:
        raise ModelError(f"it has {encoded.size} encoded bytes, expected at least {-(-count // 8)}")
    return np.unpackbits(encoded[: -(-count // 8)], count=count).astype(np.int64)


def _values(output: TensorInfo, tables: Array) -> Array:
    """Return the elements of the tables."""
    size = output.dtype.size_bytes
    whole = np.frombuffer(tables.tobytes()[: tables.size // size * size], output.dtype.numpy.newbyteorder("<"))
    return whole.astype(output.dtype.numpy)


def _channels(output: _Output) -> Array:
    """Return the channel of each element: its index along the axis of the scales, which is the first or the last."""
    stored, shape, elements = output.stored, output.info.shape, np.arange(output.info.elements)
    channels = len(stored.scales)
    if channels <= 1:
        return 0 * elements
    if not 0 <= stored.axis < len(shape) or shape[stored.axis] != channels:
        raise ModelError(f"it has {channels} scales on axis {stored.axis}, but its shape is {list(shape)}")
    if stored.axis == len(shape) - 1:
        return elements % channels
    if stored.axis != 0:
        raise UnsupportedError(f"its scales are on axis {stored.axis}, expected the first or the last")
    return elements // (output.info.elements // channels)


_METHODS: Mapping[int, Callable[[_Output, list[int], Array, Array], Array]] = {0: _look_up, 1: _huffman, 2: _pruned}
"""By number."""
