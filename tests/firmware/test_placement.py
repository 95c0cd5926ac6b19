# SPDX-License-Identifier: Apache-2.0
"""The places of devices on a board: windows of any size that do not overlap, and interrupts that exist."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import ferrule
from ferrule._typing import override
from ferrule.architectures import CORTEX_M
from ferrule.backends import Backend, BackendId, Device, LayerSupport, Support
from ferrule.backends.firmware import DeviceDriver, LoweredOp, LoweringContext, Socket
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.target import Target
from ferrule.boards import Board, load_board
from ferrule.boards.description import Expansion
from ferrule.devices import Register, RegisterModel, RegisterTable
from ferrule.dom import Call, Identifier
from ferrule.emulation.attached import attached_devices
from ferrule.errors import FerruleError
from ferrule.firmware import Image, Job, emit
from ferrule.graph import Graph, Layer

KIB = 1024
HALF = ferrule.Quantization.of(0.5)


class Plain(LayerSupport):
    """Supports every layer."""

    @override
    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        return Support()


class LargeModel(RegisterModel):
    """Has a window of 16 KiB."""

    table = RegisterTable(name="large", registers=(Register("ID", 0),), size_bytes=16 * KIB)


class LargeTarget:
    """Devices whose window is as large as their binding states."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        return LoweredOp(kernel="large", status=Call(Identifier("large_run"), (context.resource_handle,)))

    def driver(self, device: Device) -> DeviceDriver:
        binding = device.binding
        return DeviceDriver(
            driver="large_driver",
            header="large.h",
            context="large",
            base=binding.get("base"),  # type: ignore[arg-type]
            window_bytes=binding["window"],  # type: ignore[arg-type]
            interrupt=binding.get("interrupt"),  # type: ignore[arg-type]
            handler="large_interrupt",
            model=LargeModel,
        )

    def plugged(self, device: Device, socket: Socket) -> Device:
        return replace(device, binding={"base": socket.address, "interrupt": socket.interrupt, **device.binding})


class Large(Backend):
    """A device with many registers."""

    id = BackendId("Large")

    @override
    def layer_support(self) -> LayerSupport:
        return Plain()

    @override
    def firmware_target(self) -> LargeTarget:
        return LargeTarget()


def artifact(bindings: Sequence[Mapping[str, int]], board: str | Board = "mps2-an386") -> ferrule.codegen.Artifact:
    """Generate the code for a chain of layers, one for each device, named a, b, and so on."""
    network = ferrule.Network("chain")
    last = network.add_input(ferrule.TensorInfo(name="x", shape=(4,), dtype=ferrule.DataType.INT8, quantization=HALF))
    names = [chr(ord("a") + index) for index in range(len(bindings))]
    for name in names:
        last = network.add_maximum_layer(last, last, name=f"layer_{name}")
    network.set_outputs([last])
    registry = BackendRegistry()
    registry.register(Large.id, Large)
    devices = [Device(name=name, backend=Large.id, binding=each) for name, each in zip(names, bindings, strict=True)]
    hints = {f"layer_{name}": f"Large/{name}" for name in names}
    return emit(network, Job(board=board, backends=("Large",), devices=devices, hints=hints, registry=registry))


def bases(bindings: Sequence[Mapping[str, int]], board: str | Board = "mps2-an386") -> list[int | None]:
    return [use.driver.base for use in artifact(bindings, board).devices]


def resized(*places: tuple[int, int]) -> Board:
    """Return a board with places of these addresses and sizes."""
    board = load_board("mps2-an386")
    return replace(
        board,
        expansions=tuple(
            Expansion(address=address, size_bytes=size, interrupt=28 + index)
            for index, (address, size) in enumerate(places)
        ),
    )


@pytest.mark.parametrize("size", [0x400, 16 * KIB, 64 * KIB])
def test_devices_of_every_size_have_places_of_their_own(size: int) -> None:
    places = [each.address for each in load_board("mps2-an386").expansions]
    assert bases([{"window": size}] * 4) == places


def test_a_large_device_takes_the_first_place_that_is_large_enough() -> None:
    board = resized((0xA000_0000, 4 * KIB), (0xA000_1000, 4 * KIB), (0xA001_0000, 16 * KIB))
    assert bases([{"window": 16 * KIB}, {"window": 4 * KIB}, {"window": 4 * KIB}], board) == [
        0xA001_0000,
        0xA000_0000,
        0xA000_1000,
    ]


def test_a_place_under_the_window_of_a_device_with_an_address_is_taken() -> None:
    found = bases([{"window": 4 * KIB}, {"window": 16 * KIB, "base": 0x9FFF_D000}])
    assert found == [0xA001_0000, 0x9FFF_D000]


def test_a_device_that_fits_nowhere_is_refused_with_the_sizes() -> None:
    board = resized((0xA000_0000, 16 * KIB), (0xA001_0000, 4 * KIB))
    message = "board mps2-an386 has 2 places for accelerators, none for 'b', whose registers need 16,384 B"
    with pytest.raises(FerruleError, match=message) as caught:
        artifact([{"window": 16 * KIB}, {"window": 16 * KIB}], board)
    assert caught.value.hint is not None
    assert "0xa0000000 with 16,384 B, 0xa0010000 with 4,096 B; taken: 16,384 B by 'a'" in caught.value.hint


@pytest.mark.parametrize("swapped", [False, True])
def test_devices_that_overlap_are_refused_by_both_names(swapped: bool) -> None:
    bindings = [{"window": 16 * KIB, "base": 0x5000_0000}, {"window": 16 * KIB, "base": 0x5000_1000}]
    low, high = ("b", "a") if swapped else ("a", "b")
    message = (
        f"devices '{low}' and '{high}' overlap: the registers of '{low}' have 16,384 B at 0x50000000, "
        f"those of '{high}' begin at 0x50001000"
    )
    with pytest.raises(FerruleError, match=re.escape(message)):
        artifact(bindings[::-1] if swapped else bindings)


@pytest.mark.parametrize(
    ("board", "line", "lines"),
    [
        ("mps2-an386", 32, "mps2-an386 has 0 to 31"),
        ("mps2-an505", 124, "mps2-an505 has 0 to 123"),
        ("stm32f4_discovery", 82, "stm32f4_discovery has 0 to 81, and 96, 97, 98, 99 for the accelerators"),
    ],
)
def test_an_interrupt_that_does_not_exist_is_refused(board: str, line: int, lines: str) -> None:
    with pytest.raises(FerruleError, match=f"device 'a' has interrupt {line}, which does not exist: {lines}"):
        artifact([{"window": 4 * KIB, "interrupt": line}], board)
    artifact([{"window": 4 * KIB, "interrupt": line - 1}], board)


def test_the_interrupts_of_places_exist_on_the_emulated_board() -> None:
    (use,) = artifact([{"window": 4 * KIB}], "stm32f4_discovery").devices
    assert use.driver.interrupt == 96


def test_a_model_may_not_be_larger_than_its_driver_states(tmp_path: Path) -> None:
    image = Image(path=tmp_path, architecture=CORTEX_M, entry=0, sections=(), segments=(), symbols=())
    with pytest.raises(
        FerruleError, match=r"device a: its model has 16,384 B of registers, .* states 4,096 B"
    ) as found:
        attached_devices(artifact([{"window": 4 * KIB}]), image)
    assert found.value.hint == "set window_bytes of the DeviceDriver that backend Large returns"
    (device,) = attached_devices(artifact([{"window": 16 * KIB}]), image)
    assert isinstance(device.model, LargeModel)
