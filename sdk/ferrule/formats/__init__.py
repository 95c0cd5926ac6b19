# SPDX-License-Identifier: Apache-2.0
"""The file formats of trained models: reads model files into networks and writes networks to model files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule._frozen import frozen
from ferrule.budget import begun, held
from ferrule.errors import FerruleError, ModelError, place, unknown_name
from ferrule.formats.tflite import read_tflite, to_tflite
from ferrule.interface import either
from ferrule.network import Network
from ferrule.operators.control_flow import DEFAULT_ITERATIONS
from ferrule.reading import is_file, near_names, read_bytes
from ferrule.recognition import PROGRAM, SAVED_MODEL, TFLITE, recognised
from ferrule.record import attach, recording
from ferrule.rendering import one_line

if TYPE_CHECKING:
    from ferrule.formats.onnx import Arithmetic

__all__ = ["FORMATS", "Format", "ModelFile", "from_torch", "load", "to_tflite"]

ModelFile = str | PathLike[str] | bytes
"""The path of a model file, or the file's bytes."""


@frozen
class ReadingOptions:
    """How a file is read; a format ignores what it does not have."""

    dequantize_weights: bool
    max_iterations: int
    """The limit of each loop."""
    folder: Path | None
    """The folder of the file, in which further files may have data; None for bytes."""
    rounding: str | None
    """The program whose results layers are to have; None for what the format says."""
    onnx_arithmetic: str | None
    """How operators between conversions compute; None for what the format says."""
    signature: str | None = None
    """The signature that the network computes; None for the file's only one."""
    shapes: Mapping[str, Sequence[int]] | None = None
    """The shapes of inputs, by name, whose extents the file leaves open."""


@frozen
class Format:
    """A file format that can be read, with the suffix and magic bytes that identify its files."""

    name: str
    suffix: str
    """File name suffix in lower case, including the dot."""
    magic: bytes
    """Bytes that every file of the format has at `magic_offset`."""
    magic_offset: int
    known_as: str
    """What `recognised` says that its files are; empty if it does not know them."""
    read: Callable[[bytes, str, ReadingOptions], Network]
    """(contents of the file, name of the network, options) -> network."""
    is_code: bool = False
    """Whether code in a file can run when it is read: then only the path of a file chooses the format, never bytes."""

    def fits(self, data: bytes) -> bool:
        """Whether the data has the magic bytes of the format."""
        return data[self.magic_offset :].startswith(self.magic)


def _read_tflite(data: bytes, name: str, options: ReadingOptions) -> Network:
    if options.onnx_arithmetic is not None:
        raise FerruleError(
            f"the arithmetic '{options.onnx_arithmetic}' is one for ONNX models, and this is a TensorFlow Lite model",
            hint="leave the arithmetic out; the rounding of a TensorFlow Lite model can be chosen",
        )
    if options.shapes:
        raise FerruleError(
            "shapes of inputs are given, and a TensorFlow Lite model states them all",
            hint=f"leave {either('--shape', 'shapes')} out",
        )
    return read_tflite(
        data,
        name,
        options.dequantize_weights,
        options.max_iterations,
        options.rounding or "tflm",
        options.signature,
    )


def _read_onnx(data: bytes, name: str, options: ReadingOptions) -> Network:
    from ferrule.formats.onnx import read_onnx

    arithmetic = _arithmetic(options)
    return read_onnx(data, name, options.folder, options.max_iterations, arithmetic, options.shapes)


def _read_program(data: bytes, name: str, options: ReadingOptions) -> Network:
    from ferrule.formats.onnx import read_onnx
    from ferrule.formats.pytorch import onnx_of_program

    arithmetic = _arithmetic(options)
    return read_onnx(onnx_of_program(data), name, None, options.max_iterations, arithmetic, options.shapes)


def _arithmetic(options: ReadingOptions) -> Arithmetic:
    """Return the arithmetic of an ONNX model; FerruleError for options that such models do not have."""
    if options.signature is not None:
        raise FerruleError(
            f"the signature '{options.signature}' is wanted, and an ONNX model has none",
            hint="leave the signature out",
        )
    if options.rounding is not None:
        raise FerruleError(
            f"the rounding '{options.rounding}' is one for TensorFlow Lite models, and this is an ONNX model",
            hint="an ONNX model states its rule: leave the rounding out",
        )
    from ferrule.formats.onnx import Arithmetic

    wanted = options.onnx_arithmetic or Arithmetic.OPTIMISED
    if wanted not in set(Arithmetic):
        raise unknown_name("arithmetic", wanted, list(Arithmetic))
    return Arithmetic(wanted)


FORMATS: Sequence[Format] = (
    Format(
        name="TensorFlow Lite",
        suffix=".tflite",
        magic=b"TFL3",
        magic_offset=4,
        known_as=TFLITE,
        read=_read_tflite,
    ),
    Format(
        name="ONNX",
        suffix=".onnx",
        magic=b"\x08",  # the first field of the message, `ir_version`
        magic_offset=0,
        known_as="",
        read=_read_onnx,
    ),
    Format(
        name="PyTorch",
        suffix=".pt2",
        magic=b"PK\x03\x04",  # a zip archive
        magic_offset=0,
        known_as=PROGRAM,
        read=_read_program,
        is_code=True,
    ),
)
"""The formats that `load` supports."""


def load(
    source: ModelFile,
    name: str | None = None,
    *,
    dequantize_weights: bool = False,
    max_iterations: int = DEFAULT_ITERATIONS,
    rounding: str | None = None,
    signature: str | None = None,
    onnx_arithmetic: str | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Network:
    """Return the network of a model, given the path or the bytes of its file.

    The suffix of a path and the magic bytes of the file must identify the same format of `FORMATS`; for bytes, the
    magic bytes decide alone. The network's name is `name` or, by default, the file name without its suffix; for bytes
    the default is "model".

    A model whose weights alone are quantised (dynamic-range quantisation, "hybrid") is refused, since such layers
    quantise their input anew in every run. With `dequantize_weights`, its weights become float32, scale * (stored -
    zero point), and its layers compute in float32: not the arithmetic of TensorFlow Lite, but nearer to the network as
    it was trained. This concerns TensorFlow Lite. A run fails if a WHILE has more than `max_iterations`, unless it
    comes from an ONNX model that states a higher trip count.

    ONNX files need the package `onnx` (`pip install 'ferrule[onnx]'`); tensors in further files are read from the
    folder of the model only.

    A program of torch.export (.pt2) is read by PyTorch in a process of its own, which may run code of the file; give
    none that you do not trust. PyTorch exports it to ONNX: what is said of ONNX files holds for it. The Python is that
    of this process, or the one that the variable FERRULE_TORCH names. The bytes of such a file are refused.

    TensorFlow Lite files do not state how layers round. `rounding` names the program whose results the network has:
    "tflm" (the default), TensorFlow Lite Micro, or "litert-2.3", LiteRT with XNNPACK, as far as docs/operators.md says.
    An ONNX model states its rule.

    A TensorFlow Lite file may have several signatures, such as "serving_default" and "train"; `signature` chooses one.

    Operators of a quantised ONNX model that stand between DequantizeLinear and QuantizeLinear compute as onnxruntime
    does after its optimiser ("optimised", the default of `onnx_arithmetic`): fused with the conversions where that
    fuses them, and in float32 elsewhere; but a LayerNormalization computes in integers, without the conversions among
    its operators. With "as-written", all compute in float32, as without the optimiser.

    An ONNX file may leave extents of its inputs open; `shapes` has them by the name of the input, such as
    {"image": (1, 3, 32, 32)}. An open extent with a name has the same number in all inputs, and an open first extent is
    1 by default.

    Raises:
        ModelError: the file cannot be read, has no known format or is malformed; the message names the place.
        UnsupportedError: the model uses a feature that networks do not support; the message names it and its place.
        BudgetError: reading it takes more memory or work than the present budget has (`ferrule.limits`).
        MissingToolError: the file is ONNX, and the package `onnx` is not installed, or it is a program of PyTorch,
            and PyTorch, or what it exports with, is not installed.
        FerruleError: `source` is neither a path nor bytes, or `rounding`, `signature` or `onnx_arithmetic` is unknown,
            or not one for the format, or `shapes` does not fit the inputs.
    """
    with recording() as read, begun():
        data, label, found, formats, path = _source(source, name)
        options = ReadingOptions(
            dequantize_weights=dequantize_weights,
            max_iterations=max_iterations,
            folder=None if path is None else path.parent,
            rounding=rounding,
            signature=signature,
            onnx_arithmetic=onnx_arithmetic,
            shapes=shapes,
        )
        with place(label), held(len(data), "the file"):
            network = _recognised(data, formats, path).read(data, found, options)
    attach(network, read)
    return network


def from_torch(
    module: Any,  # noqa: ANN401 torch is no dependency
    example: Any = None,  # noqa: ANN401
    name: str | None = None,
    *,
    max_iterations: int = DEFAULT_ITERATIONS,
    onnx_arithmetic: str | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Network:
    """Return the network of a PyTorch module, which PyTorch exports to ONNX (`torch.onnx.export`).

    `module` is a torch.nn.Module; it is exported in the mode of inference, and its mode is as before afterwards. Or it
    is a torch.export.ExportedProgram, which has its mode already. `example` is what the module is called with, of any
    values: a tensor or numpy array, a tuple of all arguments, or a dict of them by name; a program has none. The
    network has the example's shapes, so that an example for one sample has a first extent of 1 (`images[:1]`).
    Extents that a program leaves open are read as `load` reads them.

    Inputs have the names of the arguments of the module's `forward`. Outputs have the keys of a dict or the fields of a
    named tuple that it returns, or else are "output", or "output_0" and so on. The network's name is `name` or the
    module's class. For other arguments, see `load`.

    Raises:
        MissingToolError: torch, onnxscript or onnx is not installed.
        FerruleError: `module` is of another type, the example is missing, or PyTorch cannot export the module.
        ModelError: see `load`, as for the following.
        UnsupportedError: the module computes something that networks do not support.
        BudgetError: reading it takes more memory or work than the present budget has.
    """
    from ferrule.formats.pytorch import onnx_of_module

    data, found = onnx_of_module(module, example)
    return load(data, name or found, max_iterations=max_iterations, onnx_arithmetic=onnx_arithmetic, shapes=shapes)


def _source(source: ModelFile, name: str | None) -> tuple[bytes, str, str, Sequence[Format], Path | None]:
    """Return the bytes of a model, its names in messages and as a network, the formats to try, and its path."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        formats = [format_ for format_ in FORMATS if not format_.is_code]
        return bytes(source), name or "model", name or "model", formats, None
    if not isinstance(source, (str, PathLike)):
        raise FerruleError(
            f"a model of type {type(source).__name__} cannot be loaded",
            hint=f"give a file's path or its bytes; {_known()}",
        )
    path = Path(source)
    data = _file_bytes(path)
    formats = [format_ for format_ in FORMATS if format_.suffix == path.suffix.lower()]
    if not formats:
        with place(path.name):
            _refuse_other(data, f"a model in a file {_suffixes()}", path)
        found = f"the suffix '{path.suffix}'" if path.suffix else "no suffix"
        raise ModelError(f"{path.name}: the file has {found}, expected {_suffixes()}", hint=_known())
    return data, path.name, name or one_line(path.stem), formats, path


def _recognised(data: bytes, formats: Sequence[Format], path: Path | None) -> Format:
    """Return the first of the given formats whose magic bytes the data has; ModelError if there is none."""
    other = recognised(data)
    for format_ in formats:
        # files of other known kinds may begin so, too: ONNX's magic is a single byte, and PyTorch's is that of zip
        if format_.fits(data) and (other is None or other.what == format_.known_as):
            return format_
    wanted = formats[0]
    _refuse_other(data, f"a model of {wanted.name}", path)
    first, last = wanted.magic_offset, wanted.magic_offset + len(wanted.magic)
    if len(data) < last:
        raise ModelError(f"the file has {len(data)} bytes, expected at least {last}", hint=_known())
    text = wanted.magic.decode()
    expected = wanted.magic.hex(" ") + (f" ('{text}')" if text.isprintable() else "")
    raise ModelError(
        f"bytes {first} to {last - 1} are {data[first:last].hex(' ')}, expected {expected} of {wanted.name}",
        hint=_known(),
    )


def _refuse_other(data: bytes, expected: str, path: Path | None) -> None:
    """Raise ModelError if a file is recognised as something else than expected."""
    if not data:
        raise ModelError(f"the file is empty, expected {expected}")
    other = recognised(data)
    if other is not None:
        wanted = next((format_ for format_ in FORMATS if format_.known_as == other.what), None)
        renamed = "" if wanted is None or path is None else f"give it a name that ends in {wanted.suffix}"
        raise ModelError(f"it is {other.what}, expected {expected}", hint=renamed or other.remedy_for(path) or _known())
    if _has_graph(data):
        raise ModelError(f"it may be a model of ONNX, expected {expected}", hint="give it a name that ends in .onnx")


def _has_graph(data: bytes) -> bool:
    """Return whether data may be an ONNX model: a version, and a producer, domain or graph."""
    return data[:1] == b"\x08" and len(data) > 3 and 3 <= data[1] <= 20 and data[2] in b"\x12\x1a\x22\x2a\x32\x3a\x42"


def _suffixes() -> str:
    *others, last = (f"'{format_.suffix}'" for format_ in FORMATS)
    return f"{', '.join(others)} or {last}"


def _known() -> str:
    return f"known formats: {', '.join(f'{format_.name} ({format_.suffix})' for format_ in FORMATS)}"


def _file_bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except IsADirectoryError as error:
        if is_file(path / "saved_model.pb"):
            raise ModelError(f"'{path}' is {SAVED_MODEL.what}", hint=SAVED_MODEL.remedy_for(path)) from error
        raise ModelError(f"'{path}' is a folder, expected a file", hint=_known()) from error
    except FileNotFoundError as error:
        raise ModelError(f"there is no file '{path}'", hint=near_names(path)) from error
    except OSError as error:
        raise ModelError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"cannot read '{str(path)!r}': {error}") from error
