# SPDX-License-Identifier: Apache-2.0
"""Decodes the bytes of a .tflite file into plain values, after the verifier has checked them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ferrule.errors import ModelError, UnsupportedError, place
from ferrule.formats.tflite.schema import MODEL, OPTION_KINDS, SCHEMA_VERSION
from ferrule.formats.tflite.verifier import verify
from ferrule.graph import Array

_NAME_LIMIT = 1024
"""The most characters of a name that are kept: a fact of Ferrule's messages and C names, not a refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationRecord:
    """The quantisation of a tensor; the tuples are empty if it has none."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    custom: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRecord:
    """A tensor as stored in the file; only its offsets are checked."""

    index: int
    name: str
    """Unique, not empty and printable."""
    type: int
    """A value of the schema's enum TensorType."""
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    buffer: int
    quantization: QuantizationRecord
    is_variable: bool
    is_sparse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecord:
    """An operator as stored in the file."""

    index: int
    type: str
    """A name in the schema's enum BuiltinOperator, or "number" and a code that the schema does not define."""
    custom_code: str
    inputs: tuple[int, ...]
    """Tensor indices; -1 stands for an absent optional input."""
    outputs: tuple[int, ...]
    options_kind: int
    """The type number in the schema's union BuiltinOptions; 0 for no options."""
    options: Any
    """The accessor of the options table; None if there are no options or their kind is not decoded."""
    custom_options: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgraphRecord:
    """One subgraph of a file."""

    name: str
    signatures: tuple[str, ...]
    """The keys of the signatures that run this subgraph."""
    buffers: tuple[Array | None, ...]
    """Contents of the buffers of the whole file as uint8, read-only views; None for an empty buffer."""
    tensors: tuple[TensorRecord, ...]
    operators: tuple[OperatorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def read_model(data: bytes) -> tuple[SubgraphRecord, ...]:
    """Return the subgraphs of a file; the first is the model, which calls the others.

    Raises:
        ModelError: an offset or an index is out of range; the message names it.
        UnsupportedError: the file stores data outside its flatbuffer.
    """
    verify(data, MODEL)
    import tflite

    model = tflite.Model.GetRootAs(data, 0)
    if model.Version() != SCHEMA_VERSION:
        raise ModelError(f"the schema version is {model.Version()}, expected {SCHEMA_VERSION}")
    if model.SubgraphsLength() == 0:
        raise ModelError("the model has no subgraph, expected one")
    codes = [_code(model.OperatorCodes(index)) for index in range(model.OperatorCodesLength())]
    buffers = tuple(_buffer(model.Buffers(index), index) for index in range(model.BuffersLength()))
    signatures = [model.SignatureDefs(index) for index in range(model.SignatureDefsLength())]
    keys: dict[int, list[str]] = {}
    for each in signatures:
        keys.setdefault(each.SubgraphIndex(), []).append(text_of(each.SignatureKey()))
    return tuple(
        _subgraph(model.Subgraphs(index), buffers, codes, tuple(keys.get(index, ())))
        for index in range(model.SubgraphsLength())
    )


def _subgraph(
    graph: Any,  # noqa: ANN401
    buffers: tuple[Array | None, ...],
    codes: list[tuple[str, str]],
    signatures: tuple[str, ...],
) -> SubgraphRecord:
    names = _unique(text_of(graph.Tensors(index).Name()) for index in range(graph.TensorsLength()))
    return SubgraphRecord(
        name=text_of(graph.Name()),
        signatures=signatures,
        buffers=buffers,
        tensors=tuple(_tensor(graph.Tensors(index), index, name) for index, name in enumerate(names)),
        operators=tuple(_operator(graph.Operators(index), index, codes) for index in range(graph.OperatorsLength())),
        inputs=_integers(graph.InputsAsNumpy()),
        outputs=_integers(graph.OutputsAsNumpy()),
    )


def _code(code: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return the name of an operator and the name of its custom code, which is "" for built-in operators."""
    # The schema's rule since version 3a: the larger of the two fields is valid.
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    return _builtin_names().get(number, f"number {number}"), text_of(code.CustomCode())


@cache
def _builtin_names() -> Mapping[int, str]:
    import tflite

    return {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}


def _buffer(buffer: Any, index: int) -> Array | None:  # noqa: ANN401
    if buffer.Offset() > 1 or buffer.Size() > 1:
        raise UnsupportedError(f"buffer {index} keeps its data behind the flatbuffer, expected it inside")
    if buffer.DataLength() == 0:
        return None
    data: Array = buffer.DataAsNumpy()
    return data


def _tensor(tensor: Any, index: int, name: str) -> TensorRecord:  # noqa: ANN401
    return TensorRecord(
        index=index,
        name=name,
        type=tensor.Type(),
        shape=_integers(tensor.ShapeAsNumpy()),
        shape_signature=_integers(tensor.ShapeSignatureAsNumpy()),
        buffer=tensor.Buffer(),
        quantization=_quantization(tensor.Quantization()),
        is_variable=bool(tensor.IsVariable()),
        is_sparse=tensor.Sparsity() is not None,
    )


def _quantization(parameters: Any) -> QuantizationRecord:  # noqa: ANN401
    if parameters is None:
        return QuantizationRecord(scales=(), zero_points=(), axis=0, custom=False)
    scales = parameters.ScaleAsNumpy()
    return QuantizationRecord(
        scales=() if isinstance(scales, int) else tuple(scales.tolist()),
        zero_points=_integers(parameters.ZeroPointAsNumpy()),
        axis=parameters.QuantizedDimension(),
        custom=parameters.DetailsType() != 0,
    )


def _operator(operator: Any, index: int, codes: list[tuple[str, str]]) -> OperatorRecord:  # noqa: ANN401
    with place(f"operator {index}"):
        code = operator.OpcodeIndex()
        if code >= len(codes):
            raise ModelError(f"its operator code is number {code}, but the model has {len(codes)}")
    type_, custom_code = codes[code]
    return OperatorRecord(
        index=index,
        type=type_,
        custom_code=custom_code,
        inputs=_integers(operator.InputsAsNumpy()),
        outputs=_integers(operator.OutputsAsNumpy()),
        options_kind=operator.BuiltinOptionsType(),
        options=_options(operator),
        custom_options=b"" if operator.CustomOptionsIsNone() else operator.CustomOptionsAsNumpy().tobytes(),
    )


def _options(operator: Any) -> Any:  # noqa: ANN401
    """Return the accessor of an operator's options; None for kinds that the verifier has not checked."""
    import tflite

    kind = operator.BuiltinOptionsType()
    names = {number: name for name, number in OPTION_KINDS.items()}
    table = operator.BuiltinOptions() if kind in names else None
    if table is None:
        return None
    options = getattr(tflite, names[kind])()
    options.Init(table.Bytes, table.Pos)
    return options


def _integers(vector: Any) -> tuple[int, ...]:  # noqa: ANN401
    """Return the elements of a vector; the accessors return 0 for an absent vector."""
    return () if isinstance(vector, int) else tuple(vector.tolist())


def text_of(raw: bytes | None) -> str:
    """Return a name with each unprintable character replaced by '_'."""
    text = (raw or b"")[: 4 * _NAME_LIMIT].decode("utf-8", errors="replace")  # a character has up to 4 bytes
    return "".join(character if character.isprintable() else "_" for character in text[:_NAME_LIMIT])


def _unique(names: Iterable[str]) -> list[str]:
    """Return unique names: empty and repeated ones are numbered, and the first of equal names stays unchanged."""
    wanted = [name or f"tensor_{index}" for index, name in enumerate(names)]
    taken = set(wanted)
    seen: set[str] = set()
    numbers: dict[str, int] = {}
    result = []
    for name in wanted:
        candidate = name
        while candidate in seen or (candidate != name and candidate in taken):
            numbers[name] = numbers.get(name, 1) + 1
            candidate = f"{name}_{numbers[name]}"
        seen.add(candidate)
        result.append(candidate)
    return result
