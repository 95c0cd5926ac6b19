# SPDX-License-Identifier: Apache-2.0
"""Layers, tensors and options as the C structs that a dynamic backend reads; tensor data is not copied.

A struct of ctypes keeps the texts, arrays and structs to which its members point, but no address of a number.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from ferrule.backends.capability import CapabilityValue
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.codes import TYPE_CODES
from ferrule.backends.dynamic.descriptors import has_struct, pack
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.shared.host_memory import address
from ferrule.backends.target import Face, MemoryKind, Target
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Graph, Layer, LayerType, SubgraphView, Tensor
from ferrule.operators.table import having


def tensor_struct(tensor: Tensor) -> Any:  # noqa: ANN401 - a struct of the header
    """Return a struct ferrule_tensor; it points to the data, which must outlive it."""
    info = tensor.info
    dims = (ctypes.c_int64 * len(info.shape))(*info.shape)
    code = TYPE_CODES[info.dtype]
    struct = abi.Tensor(name=info.name.encode(), dims=dims, rank=len(dims), type=code, size_bytes=info.size_bytes)
    if info.quantization is not None:
        count = len(info.quantization.scales)
        scales = (ctypes.c_float * count)(*info.quantization.scales)
        zero_points = (ctypes.c_int64 * count)(*info.quantization.zero_points)
        struct.quantization = abi.Quantization(scales, zero_points, count, info.quantization.axis)
    if tensor.data is not None:
        struct.data = address(tensor.data)
    return struct


def _array(kind: Any, structs: Iterable[Any]) -> Any:  # noqa: ANN401 - types of ctypes
    """Return an array of pointers to structs of one kind, null for None."""
    pointers = [None if struct is None else ctypes.pointer(struct) for struct in structs]
    return (ctypes.POINTER(kind) * len(pointers))(*pointers)


def _layer_struct(layer: Layer, inputs: Any, outputs: Any, descriptor: Any) -> Any:  # noqa: ANN401 - types of ctypes
    own = None if descriptor is None else ctypes.cast(ctypes.pointer(descriptor), ctypes.c_void_p)
    return abi.Layer(
        name=layer.name.encode(),
        type=layer.type.code,
        descriptor_bytes=0 if descriptor is None else ctypes.sizeof(descriptor),
        descriptor=own,
        inputs=inputs,
        input_count=len(inputs),
        outputs=outputs,
        output_count=len(outputs),
        rounding=layer.rounding.code,
    )


def bare_layer(layer: Layer) -> Any:  # noqa: ANN401 - a struct of the header
    """Return the struct of a layer without its tensors, and without a descriptor that C cannot represent."""
    try:
        descriptor = _descriptor(layer)
    except UnsupportedError:
        descriptor = None
    return _layer_struct(layer, _array(abi.Tensor, ()), _array(abi.Tensor, ()), descriptor)


def layer_struct(graph: Graph, layer: Layer) -> Any:  # noqa: ANN401 - a struct of the header
    """Return the struct of a layer, with constants' data; UnsupportedError if C cannot represent its descriptor."""
    return _layer_in(_tensors(graph), layer)


def _tensors(graph: Graph) -> Callable[[str | None], Any]:
    """Return a function that returns the only struct of each tensor of a graph."""
    return cache(lambda name: None if name is None else tensor_struct(graph.tensor(name)))


def _layer_in(tensor: Callable[[str | None], Any], layer: Layer) -> Any:  # noqa: ANN401 - a struct of the header
    inputs, outputs = (_array(abi.Tensor, map(tensor, names)) for names in (layer.inputs, layer.outputs))
    return _layer_struct(layer, inputs, outputs, _descriptor(layer))


def subgraph_struct(view: SubgraphView) -> Any:  # noqa: ANN401 - a struct of the header
    """Return a struct ferrule_subgraph."""
    tensor = _tensors(view.graph)
    layers = _array(abi.Layer, [_layer_in(tensor, layer) for layer in view.layers])
    inputs, outputs = (_array(abi.Tensor, map(tensor, names)) for names in (view.inputs, view.outputs))
    return abi.Subgraph(layers, len(layers), inputs, len(inputs), outputs, len(outputs))


def workload_struct(info: WorkloadInfo) -> Any:  # noqa: ANN401 - a struct of the header
    """Return the struct of a layer for creating a workload."""
    given = zip(info.operands.inputs, info.constants, strict=True)
    inputs = [constant if own is None or constant is not None else Tensor(own) for own, constant in given]
    structs = [None if each is None else tensor_struct(each) for each in inputs]
    outputs = [tensor_struct(Tensor(each)) for each in info.operands.outputs]
    arrays = _array(abi.Tensor, structs), _array(abi.Tensor, outputs)
    return _layer_struct(info.layer, *arrays, _descriptor(info.layer))


def _descriptor(layer: Layer) -> ctypes.Structure | None:
    """Return the struct of a layer's parameters; None if it has none."""
    descriptor = layer.descriptor
    if isinstance(descriptor, PreCompiledDescriptor):
        if not isinstance(descriptor.payload, bytes):
            raise UnsupportedError(f"layer '{layer.name}' was compiled by another backend")
        text = ctypes.create_string_buffer(descriptor.payload, max(len(descriptor.payload), 1))
        compiled: ctypes.Structure = abi.PreCompiled(ctypes.cast(text, ctypes.c_void_p), len(descriptor.payload))
        return compiled
    if not has_struct(descriptor):
        if not fields(descriptor) or layer.type in having(transfers=True) - {LayerType.FALLBACK_IMPORT}:
            return None
        raise UnsupportedError(f"layer '{layer.name}' has a {type(descriptor).__name__}, which has no counterpart in C")
    try:
        return pack(descriptor)
    except (TypeError, OverflowError) as error:
        raise UnsupportedError(f"the descriptor of layer '{layer.name}' cannot be represented in C: {error}") from error


OPTION_KINDS = ((bool, "integer"), (int, "integer"), (float, "number"), (str, "text"))
"""The type and the member of each kind of struct ferrule_option, by the numbers of enum ferrule_option_kind."""


def options_array(options: Mapping[str, CapabilityValue]) -> ctypes.Array[Any]:
    """Return an array of struct ferrule_option."""
    return (abi.Option * len(options))(*(_option(name, value) for name, value in options.items()))  # type: ignore[no-any-return]


def _option(name: str, value: CapabilityValue) -> Any:  # noqa: ANN401 - a struct of the header
    kind = next(kind for kind, (type_, _) in enumerate(OPTION_KINDS) if isinstance(value, type_))
    member = {OPTION_KINDS[kind][1]: value.encode() if isinstance(value, str) else value}
    return abi.Option(name=name.encode(), kind=kind, **member)


def target_struct(target: Target) -> Any:  # noqa: ANN401 - a struct of the header
    """Return a struct ferrule_target."""
    device, core = target.device, target.core
    binding, options = options_array(device.binding), options_array(target.options)
    memories = [
        abi.CoreMemory(
            name=memory.name.encode(),
            address=memory.address,
            size_bytes=memory.size_bytes,
            writable=memory.kind is MemoryKind.RAM,
            cacheable=memory.cacheable,
            line_bytes=memory.line_bytes,
        )
        for memory in target.memories
    ]
    return abi.Target(
        size_bytes=ctypes.sizeof(abi.Target),
        face=abi.FACE_HOST if target.face is Face.HOST else abi.FACE_FIRMWARE,
        device=device.name.encode(),
        binding=binding,
        binding_count=len(binding),
        regions=(ctypes.c_char_p * len(device.regions))(*(name.encode() for name in device.regions)),
        region_count=len(device.regions),
        core=None if core is None else core.name.encode(),
        fpu=core is not None and core.fpu,
        dsp=core is not None and core.dsp,
        mve=core is not None and core.mve,
        memories=(abi.CoreMemory * len(memories))(*memories),
        memory_count=len(memories),
        options=options,
        option_count=len(options),
    )


def read_option(option: Any) -> tuple[str, CapabilityValue]:  # noqa: ANN401 - a struct of the header
    """Return the name and value of an option; UnsupportedError if it is malformed."""
    if not option.name:
        raise UnsupportedError("an option has no name")
    name = option.name.decode(errors="replace")
    if option.kind not in range(len(OPTION_KINDS)):
        raise UnsupportedError(f"option '{name}' has kind {option.kind}, expected 0 to 3")
    type_, member = OPTION_KINDS[option.kind]
    value = getattr(option, member)
    return name, (value or b"").decode(errors="replace") if type_ is str else type_(value)
