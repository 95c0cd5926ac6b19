# SPDX-License-Identifier: Apache-2.0
"""Lowering of streams, the bindings of devices, and what is refused; no compiler is called."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ethos_u_streams import U55, copy, maximum, payload, settings, short, stop
from small_networks import int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.ethos_u.commands import Kind, Short
from ferrule.backends.ethos_u.compiled import CompiledStream, StreamTensor
from ferrule.backends.ethos_u.configuration import configuration
from ferrule.backends.ethos_u.firmware import ALIGNMENT, TIMEOUT_FLOOR_US, EthosUTarget, _timeout_us
from ferrule.backends.ethos_u.model import EthosUModel
from ferrule.backends.ethos_u.program import EthosUProgram
from ferrule.backends.ethos_u.report import OperationEstimate, VelaReport
from ferrule.backends.ethos_u.timing import KNOWN
from ferrule.backends.firmware import Blob, LoweringContext, PlacedTensor, Socket
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.registry import default_registry
from ferrule.backends.target import Face, default_target
from ferrule.boards import load_board
from ferrule.dom import Aggregate, Identifier, Null, Variable, unsigned
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.firmware import place_devices
from ferrule.graph import DataType, LayerType

COUNT = 24
WORDS = [*copy(0, 64, COUNT), *maximum(64, 32, 128, COUNT), *stop()]
NPU = Device(name="npu0", backend=BackendId("EthosU"))


def tensor(name: str, offset: int, size: int = COUNT, region: int = 1) -> StreamTensor:
    return StreamTensor(name=name, shape=(1, size), dtype=DataType.INT8, region=region, offset=offset)


STREAM = CompiledStream(
    configuration=U55,
    payload=payload(WORDS),
    read_only=b"",
    scratch_bytes=160,
    fast_scratch_bytes=0,
    inputs=(tensor("x", 0), tensor("y", 32)),
    outputs=(tensor("z", 128),),
)
REPORT = VelaReport(
    version="5.2.0",
    configuration=U55.name,
    system_config="",
    memory_mode="",
    clock_hz=500_000_000,
    cycles=1234,
    npu_cycles=1000,
    macs=0,
    memories=(),
    layers=(),
    operations=(OperationEstimate(offset=len(WORDS) * 4 - 8, cycles=99, layer="z"),),
    warnings=(),
)


def context(stream: CompiledStream | object = STREAM, **binding: str | int) -> LoweringContext:
    """Return the context in which a stream is lowered that takes the place of a MAXIMUM."""
    network = ferrule.Network("net")
    for name in ("x", "y"):
        network.add_input(int8_input(name, 1, COUNT))
    network.set_outputs([network.add_maximum_layer("x", "y", name="z")])
    (layer,) = network.layers
    program = EthosUProgram(stream=stream, report=REPORT) if isinstance(stream, CompiledStream) else stream
    descriptor = PreCompiledDescriptor(payload=program)
    target = default_target(BackendId("EthosU"), Face.FIRMWARE)
    return LoweringContext(
        graph=network,
        layer=replace(layer, type=LayerType.PRE_COMPILED, descriptor=descriptor),
        target=replace(target, device=replace(NPU, binding=binding)),
        prefix="net_z",
        pointers={name: Identifier(name) for name in ("x", "y", "z")},
        resource_handle=Identifier("npu"),
    )


def members(variable: object) -> dict[str, object]:
    assert isinstance(variable, Variable)
    assert isinstance(variable.value, Aggregate)
    return {str(field.name): field.value for field in variable.value.fields}


def test_a_stream() -> None:
    op = EthosUTarget().lower(context())
    (blob,) = op.blobs
    assert (blob.data.tobytes(), blob.alignment) == (STREAM.payload, ALIGNMENT)
    assert (op.scratch_bytes, op.scratch_alignment) == (160, ALIGNMENT)
    assert op.placed == (
        PlacedTensor(tensor="x", offset=0, preserved=True),
        PlacedTensor(tensor="y", offset=32, preserved=True),
        PlacedTensor(tensor="z", offset=128),
    )
    assert (op.cycles, op.timeout_us) == (1234, TIMEOUT_FLOOR_US + 8 * 1234)
    (table,) = op.declarations
    values = members(table)
    assert values["payload"] == Identifier(blob.name)
    assert values["read_only"] == Null()
    assert values["scratch_bytes"] == unsigned(160)
    assert op.start is not None
    assert op.status is not None
    assert (
        op.start.arguments
        == op.status.arguments
        == (Identifier("npu"), op.start.arguments[1], Identifier("scratch"), Null())
    )  # type: ignore[attr-defined]
    assert KNOWN.of(np.array(WORDS, "<u4").tobytes()) == {len(WORDS) * 4 - 8: 99}


def test_constants() -> None:
    op = EthosUTarget().lower(context(replace(STREAM, read_only=bytes(40))))
    assert [(blob.name, blob.data.size, blob.alignment) for blob in op.blobs] == [
        ("net_z_payload", len(STREAM.payload), ALIGNMENT),
        ("net_z_read_only", 40, ALIGNMENT),
    ]
    assert all(isinstance(blob, Blob) for blob in op.blobs)
    assert members(op.declarations[0])["read_only_bytes"] == unsigned(40)


def test_an_input_that_the_stream_overwrites_is_not_preserved() -> None:
    words = [*copy(32, 0, COUNT), *maximum(0, 32, 128, COUNT), *stop()]
    op = EthosUTarget().lower(context(replace(STREAM, payload=payload(words))))
    assert [(each.tensor, each.preserved) for each in op.placed] == [("x", False), ("y", True), ("z", False)]


def test_a_stream_that_the_model_does_not_execute_is_for_silicon() -> None:
    words = [*settings({Short.OFM_PRECISION: 2 << 6 | 1}), *short(Kind.POOL), *WORDS]
    op = EthosUTarget().lower(context(replace(STREAM, payload=payload(words))))
    assert not any(each.preserved for each in op.placed)


def test_a_fast_scratch_lies_behind_the_scratch() -> None:
    stream = replace(
        STREAM, scratch_bytes=156, fast_scratch_bytes=64, inputs=(tensor("x", 0), tensor("y", 32, region=2))
    )
    op = EthosUTarget().lower(context(stream))
    assert op.scratch_bytes == 160 + 64
    assert [each.offset for each in op.placed] == [0, 160 + 32, 128]
    assert members(op.declarations[0])["fast_scratch_bytes"] == unsigned(64)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (replace(STREAM, inputs=(tensor("x", 0),)), r"inputs are x int8\[1, 24\], expected x int8\[1, 24\], y int8"),
        (replace(STREAM, outputs=(tensor("z", 128, 23),)), r"outputs are z int8\[1, 23\], expected z int8\[1, 24\]"),
        (replace(STREAM, outputs=()), "outputs are none, expected z"),
        (
            replace(STREAM, configuration=configuration("ethos-u65-256")),
            "compiled for ethos-u65-256, but device 'npu0'",
        ),
        (b"something", "layer 'z' .* was not compiled for Ethos-U"),
    ],
)
def test_what_does_not_fit(stream: object, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        EthosUTarget().lower(context(stream))


def test_a_layer_that_is_not_compiled() -> None:
    made = context()
    with pytest.raises(UnsupportedError, match="was not compiled for Ethos-U"):
        EthosUTarget().lower(replace(made, layer=made.graph.layers[0]))


def test_the_limit_of_a_wait_has_a_limit() -> None:
    assert _timeout_us(1) == TIMEOUT_FLOOR_US + 8
    assert _timeout_us(1 << 40) == (1 << 31) - 1


# ---- devices


def test_the_driver_of_a_device() -> None:
    device = replace(
        NPU, binding={"base": 0x4810_2000, "interrupt": 56, "use_interrupt": 1, "configuration": "ethos-u65-256"}
    )
    driver = EthosUTarget().driver(device)
    assert (driver.driver, driver.context, driver.handler) == ("ethos_u_driver", "ethos_u", "ethos_u_interrupt")
    assert (driver.base, driver.interrupt, driver.depth, driver.window_bytes) == (0x4810_2000, 56, 1, 0x1000)
    fields = dict(driver.context_fields)
    assert fields["config"] == unsigned(configuration("ethos-u65-256").register)
    assert fields["use_interrupt"] is True
    assert "nonsecure" not in fields
    assert driver.model is not None
    model = driver.model()
    assert isinstance(model, EthosUModel)
    assert model.configuration.name == "ethos-u65-256"


@pytest.mark.parametrize("binding", [{"use_interrupt": 0}, {}])
def test_without_the_interrupt_it_needs_none(binding: dict[str, int]) -> None:
    driver = EthosUTarget().driver(replace(NPU, binding={"base": 0x4810_2000, **binding}))
    assert driver.interrupt is None


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ({"configuration": "ethos-u85-256"}, "Ethos-U85 has other command streams"),
        ({"configuration": "ethos-u55-129"}, "there is no configuration of Ethos-U 'ethos-u55-129'"),
        ({"configuration": 128}, "device 'npu0'.*configuration is 128, expected a text"),
        ({"driver": "other"}, "there is no driver 'other'"),
        ({"base": 0x4810_2001}, "base is 0x48102001, expected a multiple of 4"),
        ({"base": 0x4810_2000, "use_interrupt": 1}, "use_interrupt is 1, but the interrupt has no number"),
        ({"secure": 1}, "EthosU has no 'secure'"),
        ({"nonsecure": 2}, "nonsecure is 2, expected a whole number from 0 to 1"),
    ],
)
def test_bindings_that_are_wrong(binding: dict[str, str | int], message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        EthosUTarget().driver(replace(NPU, binding=binding))


@pytest.mark.parametrize(
    ("board", "base", "interrupt"), [("mps2-an505", 0xA000_0000, 120), ("mps2-an500", 0xB000_0000, 28)]
)
def test_a_place_on_the_board(board: str, base: int, interrupt: int) -> None:
    devices = [replace(NPU, binding={"use_interrupt": 1}), replace(NPU, name="npu1", binding={"base": 0x5000_0000})]
    (_, first), (_, second) = place_devices(devices, load_board(board), default_registry())
    assert (first.base, first.interrupt) == (base, interrupt)
    assert second.base == 0x5000_0000


def test_a_socket() -> None:
    placed = EthosUTarget().plugged(replace(NPU, binding={"interrupt": 5}), Socket(address=0x1000, interrupt=9))
    assert placed.binding == {"base": 0x1000, "interrupt": 5}
