# SPDX-License-Identifier: Apache-2.0
"""Layers, tensors and options as the C structs that a dynamic backend reads; tensor data is not copied."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from ferrule.backends.capability import CapabilityValue
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.codes import TYPE_CODES
from ferrule.backends.dynamic.descriptors import descriptor_structs
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.shared.host_memory import address
from ferrule.backends.target import Face, MemoryKind, Target
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Graph, Layer, LayerType, SubgraphView, Tensor
from ferrule.operators.table import having


class TensorRecord:
    """A struct ferrule_tensor and the objects it points to."""

    __slots__ = ("_alive", "info", "pointer", "struct")

    def __init__(self, tensor: Tensor) -> None:
        info = tensor.info
        name = info.name.encode()
        dims = (ctypes.c_int64 * len(info.shape))(*info.shape)
        self.info = info
        self.struct = abi.Tensor(
            name=name, dims=dims, rank=len(info.shape), type=TYPE_CODES[info.dtype], size_bytes=info.size_bytes
        )
        self.pointer = ctypes.pointer(self.struct)
        alive: list[object] = [name, dims, tensor.data]
        if info.quantization is not None:
            count = len(info.quantization.scales)
            scales = (ctypes.c_float * count)(*info.quantization.scales)
            zero_points = (ctypes.c_int64 * count)(*info.quantization.zero_points)
            self.struct.quantization = abi.Quantization(
                scales=scales, zero_points=zero_points, count=count, axis=info.quantization.axis
            )
            alive += [scales, zero_points]
        if tensor.data is not None:
            self.struct.data = address(tensor.data)
        self._alive = alive


class LayerRecord:
    """A struct ferrule_layer and the objects it points to."""

    __slots__ = ("_alive", "input_array", "inputs", "output_array", "outputs", "struct")

    def __init__(
        self,
        layer: Layer,
        inputs: Sequence[TensorRecord | None],
        outputs: Sequence[TensorRecord],
        *,
        bare: bool = False,
    ) -> None:
        name = layer.name.encode()
        try:
            descriptor, size_bytes, alive = _pack_descriptor(layer)
        except UnsupportedError:
            if not bare:
                raise
            descriptor, size_bytes, alive = None, 0, None
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.input_array = tensor_array(inputs)
        self.output_array = tensor_array(outputs)
        self.struct = abi.Layer(
            name=name,
            type=layer.type.code,
            descriptor_bytes=size_bytes,
            descriptor=descriptor,
            inputs=self.input_array,
            input_count=len(self.inputs),
            outputs=self.output_array,
            output_count=len(self.outputs),
            rounding=layer.rounding.code,
        )
        self._alive = (name, alive)


def bare_layer(layer: Layer) -> LayerRecord:
    """Return the record of a layer without its tensors, and without a descriptor that C cannot represent."""
    return LayerRecord(layer, (), (), bare=True)


def tensor_array(records: Sequence[TensorRecord | None]) -> ctypes.Array[Any]:
    """Return an array of pointers to tensors, null for None; the array holds no references to the records."""
    array: ctypes.Array[Any] = (ctypes.POINTER(abi.Tensor) * len(records))()
    for index, record in enumerate(records):
        if record is not None:
            array[index] = record.pointer
    return array


def layer_record(graph: Graph, layer: Layer) -> LayerRecord:
    """Return the record of a layer, with constants' data; UnsupportedError if C cannot represent its descriptor."""
    return GraphRecords(graph).layer(layer)


class GraphRecords:
    """Makes records of the layers of one graph, with a single record per tensor."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tensors: dict[str, TensorRecord] = {}

    def tensor(self, name: str) -> TensorRecord:
        """Return the record of a tensor."""
        if name not in self._tensors:
            self._tensors[name] = TensorRecord(self._graph.tensor(name))
        return self._tensors[name]

    def layer(self, layer: Layer) -> LayerRecord:
        """Return a new record of a layer."""
        inputs = [None if name is None else self.tensor(name) for name in layer.inputs]
        return LayerRecord(layer, inputs, [self.tensor(name) for name in layer.outputs])


class SubgraphRecord:
    """A struct ferrule_subgraph and the objects it points to."""

    def __init__(self, view: SubgraphView) -> None:
        records = GraphRecords(view.graph)
        self._layers = [records.layer(layer) for layer in view.layers]
        self._inputs = tensor_array([records.tensor(name) for name in view.inputs])
        self._outputs = tensor_array([records.tensor(name) for name in view.outputs])
        pointers = [ctypes.pointer(layer.struct) for layer in self._layers]
        self._pointers = (ctypes.POINTER(abi.Layer) * len(pointers))(*pointers)
        self._tensors = records
        self.struct = abi.Subgraph(
            layers=self._pointers,
            layer_count=len(pointers),
            inputs=self._inputs,
            input_count=len(self._inputs),
            outputs=self._outputs,
            output_count=len(self._outputs),
        )


def workload_record(info: WorkloadInfo) -> LayerRecord:
    """Return the record of a layer for creating a workload."""
    given = zip(info.operands.inputs, info.constants, strict=True)
    inputs = [constant if own is None or constant is not None else Tensor(info=own) for own, constant in given]
    outputs = [TensorRecord(Tensor(info=each)) for each in info.operands.outputs]
    return LayerRecord(info.layer, [None if each is None else TensorRecord(each) for each in inputs], outputs)


def _pack_descriptor(layer: Layer) -> tuple[int | None, int, object]:
    """Return the address and size of the descriptor, and an object that keeps it alive."""
    descriptor = layer.descriptor
    if isinstance(descriptor, PreCompiledDescriptor):
        if not isinstance(descriptor.payload, bytes):
            raise UnsupportedError(f"layer '{layer.name}' was compiled by another backend")
        text = ctypes.create_string_buffer(descriptor.payload, max(len(descriptor.payload), 1))
        compiled = abi.PreCompiled(ctypes.addressof(text), len(descriptor.payload))
        return ctypes.addressof(compiled), ctypes.sizeof(compiled), (compiled, text)
    struct = descriptor_structs().get(type(descriptor))
    if struct is None:
        if layer.type in having(transfers=True) - {LayerType.FALLBACK_IMPORT}:
            return None, 0, None
        raise UnsupportedError(f"layer '{layer.name}' has a {type(descriptor).__name__}, which has no counterpart in C")
    if not struct.fields:
        return None, 0, None
    try:
        packed, alive = struct.pack(descriptor)
    except (TypeError, OverflowError) as error:
        raise UnsupportedError(f"the descriptor of layer '{layer.name}' cannot be represented in C: {error}") from error
    return ctypes.addressof(packed), ctypes.sizeof(packed), (packed, alive)


OPTION_KINDS = ((bool, "integer"), (int, "integer"), (float, "number"), (str, "text"))
"""The type and the member of each kind of struct ferrule_option, by the numbers of enum ferrule_option_kind."""


class OptionsRecord:
    """An array of struct ferrule_option and the objects it points to."""

    __slots__ = ("_alive", "array", "count")

    def __init__(self, options: Mapping[str, CapabilityValue]) -> None:
        self._alive: list[bytes] = []
        self.count = len(options)
        self.array = (abi.Option * self.count)(*(self._option(name, value) for name, value in options.items()))

    def _option(self, name: str, value: CapabilityValue) -> Any:  # noqa: ANN401 - a struct of the sheet
        kind = next(kind for kind, (type_, _) in enumerate(OPTION_KINDS) if isinstance(value, type_))
        member = {OPTION_KINDS[kind][1]: self._text(value) if isinstance(value, str) else value}
        return abi.Option(name=self._text(name), kind=kind, **member)

    def _text(self, text: str) -> bytes:
        self._alive.append(text.encode())
        return self._alive[-1]


class TargetRecord:
    """A struct ferrule_target and the objects it points to."""

    __slots__ = ("_alive", "struct")

    def __init__(self, target: Target) -> None:
        device, core = target.device, target.core
        binding, options = OptionsRecord(device.binding), OptionsRecord(target.options)
        regions = (ctypes.c_char_p * len(device.regions))(*(name.encode() for name in device.regions))
        memories = (abi.CoreMemory * len(target.memories))(
            *(
                abi.CoreMemory(
                    name=memory.name.encode(),
                    address=memory.address,
                    size_bytes=memory.size_bytes,
                    writable=memory.kind is MemoryKind.RAM,
                    cacheable=memory.cacheable,
                    line_bytes=memory.line_bytes,
                )
                for memory in target.memories
            )
        )
        self.struct = abi.Target(
            size_bytes=ctypes.sizeof(abi.Target),
            face=abi.FACE_HOST if target.face is Face.HOST else abi.FACE_FIRMWARE,
            device=device.name.encode(),
            binding=binding.array,
            binding_count=binding.count,
            regions=regions,
            region_count=len(regions),
            core=None if core is None else core.name.encode(),
            fpu=core is not None and core.fpu,
            dsp=core is not None and core.dsp,
            mve=core is not None and core.mve,
            memories=memories,
            memory_count=len(memories),
            options=options.array,
            option_count=options.count,
        )
        self._alive = (binding, options, regions, memories)


def read_option(option: Any) -> tuple[str, CapabilityValue]:  # noqa: ANN401 - a struct of the sheet
    """Return the name and value of an option; UnsupportedError if it is malformed."""
    if not option.name:
        raise UnsupportedError("an option has no name")
    name = option.name.decode(errors="replace")
    if option.kind not in range(len(OPTION_KINDS)):
        raise UnsupportedError(f"option '{name}' has kind {option.kind}, expected 0 to 3")
    type_, member = OPTION_KINDS[option.kind]
    value = getattr(option, member)
    return name, (value or b"").decode(errors="replace") if type_ is str else type_(value)
