# SPDX-License-Identifier: Apache-2.0
"""Layers as C structs: every descriptor field arrives, and layers that cannot cross into C are refused."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest

from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.codes import ACTIVATION_CODES, TYPE_CODES
from ferrule.backends.dynamic.descriptors import pack
from ferrule.backends.dynamic.records import layer_struct, options_array, read_option
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.errors import UnsupportedError
from ferrule.graph import Graph, Layer, LayerType
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.movement.slice import SliceDescriptor
from ferrule.testing.backends.random_networks import random_network


def expected(value: object) -> object:
    match value:
        case Activation():
            return ACTIVATION_CODES[value]
        case Padding():
            return (value.top, value.bottom, value.left, value.right)
        case str():
            return value.encode()
        case _:
            return value


def found(struct: ctypes.Structure, name: str) -> object:
    value = getattr(struct, name)
    if isinstance(value, ctypes.Structure):
        return tuple(getattr(value, side) for side in ("top", "bottom", "left", "right"))
    if hasattr(struct, f"{name}_count"):
        return tuple(value[: getattr(struct, f"{name}_count")])
    return value


def check_tensors(graph: Graph, names: Sequence[str | None], array: Sequence[object], count: int) -> None:
    assert count == len(names)
    for name, pointer in zip(names, array[:count], strict=True):
        if name is None:
            assert not pointer
            continue
        tensor, struct = graph.tensor(name), pointer.contents
        assert struct.name.decode() == name
        assert tuple(struct.dims[: struct.rank]) == tensor.info.shape
        assert struct.type == TYPE_CODES[tensor.info.dtype]
        assert struct.size_bytes == tensor.info.size_bytes
        assert struct.handle is None
        quantization = tensor.info.quantization
        assert struct.quantization.count == (0 if quantization is None else len(quantization.scales))
        if quantization is not None:
            given = struct.quantization
            assert tuple(given.scales[: given.count]) == quantization.scales
            assert tuple(given.zero_points[: given.count]) == quantization.zero_points
            assert given.axis == quantization.axis
        if tensor.data is None:
            assert struct.data is None
        else:
            assert struct.data == tensor.data.__array_interface__["data"][0]


@pytest.mark.parametrize("seed", range(25))
def test_layers_arrive_whole(seed: int) -> None:
    network = random_network(seed)
    for layer in network.layers:
        struct = layer_struct(network, layer)
        assert struct.name.decode() == layer.name
        assert struct.type == layer.type.code
        check_tensors(network, layer.inputs, struct.inputs, struct.input_count)
        check_tensors(network, layer.outputs, struct.outputs, struct.output_count)
        if not fields(layer.descriptor):
            assert (struct.descriptor, struct.descriptor_bytes) == (None, 0)
            continue
        kind = type(pack(layer.descriptor))
        assert struct.descriptor_bytes == ctypes.sizeof(kind)
        descriptor = kind.from_address(struct.descriptor)
        for field in fields(layer.descriptor):
            assert found(descriptor, field.name) == expected(getattr(layer.descriptor, field.name))


def chain() -> Network:
    network = random_network(1)
    (first, *_) = network.inputs
    last = network.add_reshape_layer(first.name, (-1,), name="flat")
    network.set_outputs([last])
    return network


def test_a_number_of_more_than_32_bits_is_refused() -> None:
    network = chain()
    layer = Layer(
        "large",
        LayerType.SLICE,
        SliceDescriptor(begin=(1 << 40,), size=(1,)),
        inputs=("flat",),
        outputs=("flat",),
    )
    with pytest.raises(
        UnsupportedError, match="'large' cannot be represented in C: 1099511627776 does not fit in 32 bits"
    ):
        layer_struct(network, layer)


def pre_compiled(payload: object) -> Layer:
    descriptor = PreCompiledDescriptor(payload=payload)
    return Layer("compiled", LayerType.PRE_COMPILED, descriptor, inputs=("flat",), outputs=("flat",))


@pytest.mark.parametrize("payload", [b"", b"bytes", b"with\0zero"])
def test_a_pre_compiled_object_crosses_as_bytes(payload: bytes) -> None:
    struct = layer_struct(chain(), pre_compiled(payload))
    compiled = abi.PreCompiled.from_address(struct.descriptor)
    assert ctypes.string_at(compiled.object, compiled.object_bytes) == payload


def test_the_pre_compiled_object_of_another_backend_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="compiled by another backend"):
        layer_struct(chain(), pre_compiled(object()))


def test_options_go_and_come_back() -> None:
    options = {"flag": True, "count": -(1 << 40), "share": 0.1, "text": "ä", "off": False}
    array = options_array(options)
    assert dict(read_option(option) for option in array) == options
    assert len(array) == 5


@pytest.mark.parametrize("option", [abi.Option(), abi.Option(name=b"x", kind=4), abi.Option(name=b"x", kind=-1)])
def test_malformed_options_are_refused(option: object) -> None:
    with pytest.raises(UnsupportedError):
        read_option(option)


def test_a_table_is_read_no_further_than_its_size() -> None:
    """A backend built for an earlier minor version has smaller tables; their missing entries read as null."""
    memory = (ctypes.c_size_t * 4)(16, 0x1111, 0x2222, 0x3333)
    table = abi.read_table(abi.TABLES["workloads"], ctypes.addressof(memory))
    assert ctypes.cast(table.create, ctypes.c_void_p).value == 0x1111
    assert not table.execute
    assert not table.destroy
    assert np.asarray(memory)[2] == 0x2222
