# SPDX-License-Identifier: Apache-2.0
"""Streams that Vela has compiled, and the reader of its raw .npz files.

Such a file has the quantisation of inputs and outputs as pickled objects. They are never opened: arrays are decoded
here, from a header that must have the form in which numpy writes it, and no unpickler can be reached.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ferrule._frozen import frozen
from ferrule.archives import open_archive
from ferrule.backends.ethos_u.configuration import Configuration, configuration_of
from ferrule.backends.ethos_u.stream import parse_payload
from ferrule.budget import Resource, afford
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, Shape
from ferrule.reading import is_file, read_bytes

READ_ONLY_REGION = 0
SCRATCH_REGION = 1
FAST_SCRATCH_REGION = 2
MAX_SCRATCH_BYTES = 1 << 29
"""The most that the two scratch regions may have together."""
MAX_TENSORS = 256
_REASON_CHARACTERS = 200
_QUANTIZATIONS = ("input_quantization", "output_quantization", "variable_quantization")
_TYPES = {1: DataType.INT8, 2: DataType.INT16, 4: DataType.INT32, 8: DataType.INT64}
_HINT = "compile the model with vela --output-format raw, and give the .npz file that it writes"
_MAGIC = b"\x93NUMPY\x01\x00"
# only what numpy writes is accepted: a file may come from anywhere, and numpy takes other Python literals for headers
_HEADER = re.compile(
    r"\{'descr': '([<|][SuifO]\d*)', 'fortran_order': (False|True), 'shape': \(((?:\d{1,12}(?:, |,)?)*)\), \} *\n"
)
_NUMBERS = {"<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1"}


@frozen
class StreamTensor:
    """An input, an output or a state of a stream, in NHWC order without gaps."""

    name: str
    shape: Shape
    dtype: DataType
    region: int
    offset: int
    """In bytes from the beginning of the region."""

    @property
    def size_bytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.size_bytes


@frozen
class CompiledStream:
    """A command stream with all that the NPU needs to execute it.

    Region 0 is `read_only`, region 1 the scratch, region 2 the fast scratch.
    """

    configuration: Configuration
    payload: bytes
    """The stream with its header COP1, as a driver gets it."""
    read_only: bytes
    """Compressed weights, scales, look-up tables and constants."""
    scratch_bytes: int
    fast_scratch_bytes: int
    """0 if there is no second scratch."""
    inputs: tuple[StreamTensor, ...]
    outputs: tuple[StreamTensor, ...]
    states: tuple[StreamTensor, ...] = ()
    """Tensors that keep their values from one execution to the next; they begin as their zero points."""

    @property
    def digest(self) -> str:
        """A text that is equal for equal payloads and read-only data: the first 32 digits of their SHA-256."""
        digest = hashlib.sha256(len(self.payload).to_bytes(8, "little"))
        digest.update(self.payload)
        digest.update(self.read_only)
        return digest.hexdigest()[:32]


def _damaged(message: str) -> FerruleError:
    return FerruleError(message, hint=_HINT)


def read_npz(source: Path | str | bytes) -> CompiledStream:
    """Return the stream of a raw .npz file of Vela, given by its path or its bytes.

    The file has no names: tensors are called input0, output0, state0 and so on. Nor does it say whether elements are
    signed: they are taken as signed, which the caller corrects from the model. Shapes may begin with further ones.

    Raises:
        FerruleError: the file cannot be read, is damaged, or states something impossible; an UnsupportedError or an
            UnsupportedModeError if the stream is for an NPU that is not supported, such as Ethos-U85.
    """
    where, data = ("the .npz file", source) if isinstance(source, bytes) else (str(source), _file_bytes(Path(source)))
    with _refusing(where):
        return _stream(_arrays(data))


def _file_bytes(path: Path) -> bytes:
    try:
        if not is_file(path):
            raise _damaged(f"there is no file '{path}'")
        return read_bytes(path)
    except OSError as error:
        raise FerruleError(f"cannot read '{path}': {error.strerror or error}") from error
    except ValueError as error:
        raise FerruleError(f"cannot read {str(path)!r}: {error}") from error


@contextmanager
def _refusing(where: str) -> Iterator[None]:
    try:
        yield
    except FerruleError as error:
        error.at(where)
        raise
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError,
    ) as error:  # fmt: skip
        reason = str(error).partition("\n")[0][:_REASON_CHARACTERS]  # zipfile quotes names of up to 64 KiB
        raise _damaged(f"{where}: is damaged, or no .npz file: {reason}") from error


def _arrays(data: bytes) -> dict[str, Array]:
    """Return the arrays of an .npz file, without the quantisations."""
    arrays: dict[str, Array] = {}
    size = len(data)
    with open_archive(io.BytesIO(data), "it") as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in _QUANTIZATIONS:
                continue
            if len(name) > _REASON_CHARACTERS:
                raise _damaged(f"the name of an array has {len(name)} characters")
            if name in arrays:
                raise _damaged(f"the array '{name}' is there twice")
            if member.flag_bits & 1 or member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise _damaged(f"the array '{name}' is encrypted or compressed in a rare way")
            size += member.file_size  # of which not more is unpacked, whatever follows
            afford(Resource.BYTES, size, f"the array '{name}', with those before it,")
            arrays[name] = _array(name, archive.read(member))
    return arrays


def _array(name: str, data: bytes) -> Array:
    """Return the array of a .npy file that numpy has written; text is returned as bytes of its whole length."""
    end = 10 + int.from_bytes(data[8:10], "little")
    header = _HEADER.fullmatch(data[10:end].decode("latin-1"))
    if data[:8] != _MAGIC or header is None:
        raise _damaged(f"the array '{name}' has no header as numpy writes it, in version 1.0")
    kind, order, extents = header.groups()
    if kind[1] == "O":
        raise _damaged(
            f"the array '{name}' is one of Python objects, which needs pickle, and pickled files can run code"
        )
    shape = tuple(int(extent) for extent in re.findall(r"\d+", extents))
    if order == "True" or (kind[1] == "f" and math.prod(shape)):
        raise _damaged(f"the array '{name}' has an unexpected type {kind} or order")
    if kind[:2] == "|S":
        size_bytes, dtype = int(kind[2:]), "|u1"
        present = len(data) - end
        if shape or size_bytes != present:
            raise _damaged(f"the array '{name}' has {present} bytes, and its header states otherwise")
        shape = (size_bytes,)
    elif kind in _NUMBERS or kind[1] == "f":
        dtype = kind
    else:
        raise _damaged(f"the array '{name}' has an unexpected type {kind}")
    if kind[1] == "f":  # numpy's type of an empty list
        return np.zeros(0, np.int64)
    stated = math.prod(shape) * np.dtype(dtype).itemsize
    if stated != len(data) - end:
        raise _damaged(f"the array '{name}' has {len(data) - end} bytes, and its header states {stated}")
    return np.frombuffer(data, dtype, offset=end).reshape(shape)


def _stream(arrays: Mapping[str, Array]) -> CompiledStream:
    payload = _blob(arrays, "cmd_data")
    _expect(arrays, "weight_region", READ_ONLY_REGION)
    _expect(arrays, "scratch_region", SCRATCH_REGION)
    scratch_bytes = _number(arrays, "scratch_size")
    fast_region = _number(arrays, "scratch_fast_region")
    # Vela's older code generator repeats the scratch here if there is no second one
    fast_bytes = _number(arrays, "scratch_fast_size") if fast_region != SCRATCH_REGION else 0
    if fast_bytes and fast_region != FAST_SCRATCH_REGION:
        raise _damaged(f"scratch_fast_region is {fast_region}, expected {FAST_SCRATCH_REGION}")
    if scratch_bytes + fast_bytes > MAX_SCRATCH_BYTES:
        raise FerruleError(f"the scratch has {scratch_bytes + fast_bytes} bytes, expected at most {MAX_SCRATCH_BYTES}")
    sizes = {SCRATCH_REGION: scratch_bytes, FAST_SCRATCH_REGION: fast_bytes}
    stream = CompiledStream(
        configuration=configuration_of(parse_payload(payload).config_register),
        payload=payload,
        read_only=_blob(arrays, "weight_data"),
        scratch_bytes=scratch_bytes,
        fast_scratch_bytes=fast_bytes,
        inputs=_tensors(arrays, "input", "input"),
        outputs=_tensors(arrays, "output", "output"),
        states=_tensors(arrays, "variable", "state"),
    )
    for tensor in (*stream.inputs, *stream.outputs, *stream.states):
        if tensor.offset + tensor.size_bytes > sizes.get(tensor.region, 0):
            raise _damaged(
                f"the tensor {tensor.name} is at {tensor.offset} in region {tensor.region} and has "
                f"{tensor.size_bytes} bytes, beyond the region's end"
            )
    return stream


def _array_of(arrays: Mapping[str, Array], name: str) -> Array:
    if name not in arrays:
        raise _damaged(f"there is no array '{name}'")
    return arrays[name]


def _blob(arrays: Mapping[str, Array], name: str) -> bytes:
    array = _array_of(arrays, name)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise _damaged(f"the array '{name}' has the type {array.dtype}{list(array.shape)}, expected bytes")
    return array.tobytes()


def _number(arrays: Mapping[str, Array], name: str) -> int:
    array = _array_of(arrays, name)
    if array.size != 1 or array.item() < 0:
        raise _damaged(f"the array '{name}' is no single number of 0 or more")
    return int(array.item())


def _expect(arrays: Mapping[str, Array], name: str, expected: int) -> None:
    found = _number(arrays, name)
    if found != expected:
        raise _damaged(f"{name} is {found}, expected {expected}")


def _tensors(arrays: Mapping[str, Array], kind: str, name: str) -> tuple[StreamTensor, ...]:
    shapes = _array_of(arrays, f"{kind}_shape")
    rows = [_array_of(arrays, f"{kind}_{column}") for column in ("elem_size", "region", "offset")]
    count = len(shapes) if shapes.ndim else -1
    if count > MAX_TENSORS or any(row.shape != (count,) for row in rows) or (count and shapes.ndim != 2):
        raise _damaged(f"the arrays {kind}_shape, _elem_size, _region and _offset do not match")
    tensors: dict[tuple[int, int], StreamTensor] = {}
    for index in range(count):
        shape = tuple(int(extent) for extent in shapes[index])
        size_bytes, region, offset = (int(row[index]) for row in rows)
        if size_bytes not in _TYPES or offset < 0 or any(extent < 1 for extent in shape):
            raise _damaged(
                f"the tensor {name}{index} has the shape {list(shape)}, {size_bytes} bytes per element and the offset "
                f"{offset}, which cannot be"
            )
        # Vela lists a state once for each operator that uses it
        where = (region, offset) if kind == "variable" else (index, 0)
        label = f"{name}{len(tensors)}"
        tensors.setdefault(
            where, StreamTensor(name=label, shape=shape, dtype=_TYPES[size_bytes], region=region, offset=offset)
        )
    return tuple(tensors.values())
