# SPDX-License-Identifier: Apache-2.0
"""Encodes plain values into the bytes of a .tflite file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.formats.tflite.flexbuffer import write_map
from ferrule.formats.tflite.schema import FILE_IDENTIFIER, SCHEMA_VERSION
from ferrule.graph import Quantization, Tensor
from ferrule.graph.tensor import little_endian

BUFFER_ALIGNMENT_BYTES = 16
"""The schema's force_align value of Buffer.data."""
_DEPRECATED_CODE_LIMIT = 127
"""Operator codes from this value on are stored only in `builtin_code` (schema, version 3a)."""


OptionValue = bool | int | float | str | tuple[int, ...]


@frozen
class OperatorContent:
    """One operator, with its tensors by name; None stands for an absent optional input."""

    type: str
    """A name in the schema's enum BuiltinOperator."""
    version: int = 1
    inputs: tuple[str | None, ...] = ()
    outputs: tuple[str, ...] = ()
    table: str = ""
    """The options' table in the schema; "" for no options, and for a custom operator, which has a map."""
    custom: str = ""
    """The custom code; "" for built-in operators."""
    fields: Mapping[str, OptionValue] = field(default_factory=dict)
    """The values of the options, by field of the table or by key of the map."""
    intermediates: tuple[str, ...] = ()
    """Tensors that are written without elements: readers use their quantisations."""

    @property
    def code(self) -> tuple[str, str, int]:
        """The identity of the operator: the custom code, the type and the version."""
        return self.custom, self.type, self.version


@frozen
class SubgraphContent:
    """One subgraph; tensors and operators are in the order of the file."""

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[OperatorContent, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    variables: frozenset[str] = frozenset()
    """The tensors that keep state between runs."""
    resources: tuple[str, ...] = ()
    """Further tensors, which refer to variables."""


@frozen
class ModelContent:
    """A model; the first subgraph calls the others."""

    description: str
    subgraphs: tuple[SubgraphContent, ...]
    signature: str
    """The key of the first subgraph's signature, whose names are those of the tensors."""
    shared: bool = True
    """Whether constants of equal bytes are in the file once."""


def write_model(record: ModelContent) -> bytes:
    """Return the bytes of the file; the same record always produces the same bytes."""
    return _Writer(shared=record.shared).write(record)


_Content = tuple[str, bytes]


class _Writer:
    """The state of one file under construction; a flatbuffer is built from its leaves to its root."""

    def __init__(self, *, shared: bool) -> None:
        import flatbuffers
        import tflite

        self._shared = shared
        self._schema: Any = tflite
        self._builder: Any = flatbuffers.Builder(1024)
        self._strings: dict[str, int] = {}

    def write(self, record: ModelContent) -> bytes:
        buffers, places = self._buffers([tensor for graph in record.subgraphs for tensor in graph.tensors])
        codes = dict.fromkeys(operator.code for graph in record.subgraphs for operator in graph.operators)
        offsets = [self._operator_code(*code) for code in codes]
        numbers = {code: number for number, code in enumerate(codes)}
        subgraphs = [self._subgraph(graph, places, numbers) for graph in record.subgraphs]
        signature = self._signature(record.signature, record.subgraphs[0])
        model = self._table(
            "Model",
            Version=SCHEMA_VERSION,
            OperatorCodes=self._offsets(offsets),
            Subgraphs=self._offsets(subgraphs),
            Description=self._string(record.description),
            Buffers=self._offsets(buffers),
            SignatureDefs=self._offsets([signature]),
        )
        self._builder.Finish(model, FILE_IDENTIFIER)
        return bytes(self._builder.Output())

    def _subgraph(
        self, graph: SubgraphContent, places: Mapping[_Content, int], codes: Mapping[tuple[str, str, int], int]
    ) -> int:
        """Write a subgraph, given the numbers of the buffers by content and of the operator codes."""
        indices = _indices(graph)
        empty = {name for operator in graph.operators for name in operator.intermediates}
        tensors = [
            self._tensor(t, places[self._content(t)], t.info.name in graph.variables, empty=t.info.name in empty)
            for t in graph.tensors
        ]
        tensors += [self._described(name, "resource", ()) for name in graph.resources]
        operators = [self._operator(each, codes[each.code], indices) for each in graph.operators]
        return self._table(
            "SubGraph",
            Tensors=self._offsets(tensors),
            Inputs=self._integers([indices[name] for name in graph.inputs]),
            Outputs=self._integers([indices[name] for name in graph.outputs]),
            Operators=self._offsets(operators),
            Name=self._string(graph.name),
        )

    def _signature(self, key: str, graph: SubgraphContent) -> int:
        """Write the signature of the first subgraph."""
        indices = _indices(graph)
        inputs, outputs = (
            self._offsets(
                [self._table("TensorMap", Name=self._string(name), TensorIndex=indices[name]) for name in names]
            )
            for names in (graph.inputs, graph.outputs)
        )
        return self._table(
            "SignatureDef", Inputs=inputs, Outputs=outputs, SignatureKey=self._string(key), SubgraphIndex=0
        )

    def _buffers(self, tensors: Sequence[Tensor]) -> tuple[list[int], dict[_Content, int]]:
        """Return the buffers' offsets and their numbers by content; buffer 0 is empty."""
        contents = dict.fromkeys(chain((("", b""),), map(self._content, tensors)))
        offsets = [self._table("Buffer", Data=self._data(data) if data else None) for _, data in contents]
        return offsets, {content: number for number, content in enumerate(contents)}

    def _content(self, tensor: Tensor) -> _Content:
        """Return a constant's bytes in the file, and by whose name, if they are not shared; of other tensors, none."""
        data = b"" if tensor.data is None else little_endian(tensor.data)
        return "" if self._shared or not data else tensor.info.name, data

    def _data(self, data: bytes) -> int:
        self._builder.Prep(BUFFER_ALIGNMENT_BYTES, len(data))
        return int(self._builder.CreateByteVector(data))

    def _operator_code(self, custom: str, type_: str, version: int) -> int:
        code = int(getattr(self._schema.BuiltinOperator, "CUSTOM" if custom else type_))
        return self._table(
            "OperatorCode",
            DeprecatedBuiltinCode=min(code, _DEPRECATED_CODE_LIMIT),
            CustomCode=self._string(custom) if custom else None,
            Version=version,
            BuiltinCode=code,
        )

    def _tensor(self, tensor: Tensor, buffer: int, is_variable: bool, *, empty: bool) -> int:
        info = tensor.info
        quantization = None if info.quantization is None else self._quantization(info.quantization)
        shape = (0,) if empty else info.shape
        return self._described(info.name, info.dtype, shape, buffer, quantization, is_variable or None)

    def _described(
        self,
        name: str,
        dtype: str,
        shape: Sequence[int],
        buffer: int | None = None,
        quantization: int | None = None,
        is_variable: bool | None = None,
    ) -> int:
        return self._table(
            "Tensor",
            Shape=self._integers(shape),
            Type=getattr(self._schema.TensorType, dtype.upper()),
            Buffer=buffer,
            Name=self._string(name),
            Quantization=quantization,
            IsVariable=is_variable,
            HasRank=True,
        )

    def _quantization(self, quantization: Quantization) -> int:
        return self._table(
            "QuantizationParameters",
            Scale=self._builder.CreateNumpyVector(np.array(quantization.scales, np.float32)),
            ZeroPoint=self._builder.CreateNumpyVector(np.array(quantization.zero_points, np.int64)),
            QuantizedDimension=quantization.axis if quantization.per_channel else 0,
        )

    def _operator(self, operator: OperatorContent, code: int, tensors: dict[str, int]) -> int:
        inputs = [-1 if name is None else tensors[name] for name in operator.inputs]
        outputs = [tensors[name] for name in operator.outputs]
        intermediates = [tensors[name] for name in operator.intermediates]
        options = custom = None
        if operator.table:
            fields = {_camel(name): self._field(value) for name, value in operator.fields.items()}
            options = self._table(operator.table, **fields)
        if operator.custom and operator.fields:  # maps have no vectors of numbers
            custom = self._data(write_map({k: v for k, v in operator.fields.items() if not isinstance(v, tuple)}))
        return self._table(
            "Operator",
            OpcodeIndex=code,
            Inputs=self._integers(inputs),
            Outputs=self._integers(outputs),
            BuiltinOptionsType=0 if options is None else getattr(self._schema.BuiltinOptions, operator.table),
            BuiltinOptions=options,
            CustomOptions=custom,
            Intermediates=self._integers(intermediates) if intermediates else None,
        )

    def _field(self, value: OptionValue) -> bool | int | float:
        if isinstance(value, str):
            return self._string(value)
        return self._integers(value) if isinstance(value, tuple) else value

    def _table(self, name: str, **fields: object) -> int:
        """Write a table whose children are already written; None stands for an absent field."""
        start: Callable[[Any], None] = getattr(self._schema, f"{name}Start")
        end: Callable[[Any], int] = getattr(self._schema, f"{name}End")
        start(self._builder)
        for field_name, value in fields.items():
            if value is not None:
                getattr(self._schema, f"{name}Add{field_name}")(self._builder, value)
        return int(end(self._builder))

    def _string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = int(self._builder.CreateString(text))
        return self._strings[text]

    def _integers(self, values: Sequence[int]) -> int:
        return int(self._builder.CreateNumpyVector(np.array(values, np.int32)))

    def _offsets(self, offsets: Sequence[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())


def _indices(graph: SubgraphContent) -> dict[str, int]:
    """Return the numbers of a subgraph's tensors in the file, by name."""
    names = [*(tensor.info.name for tensor in graph.tensors), *graph.resources]
    return {name: index for index, name in enumerate(names)}


def _camel(name: str) -> str:
    """Return the name of a field as the schema's functions have it."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
