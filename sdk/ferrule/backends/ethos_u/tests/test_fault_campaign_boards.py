# SPDX-License-Identifier: Apache-2.0
"""Faults of one inference on an emulated board, with Ferrule's driver and with Arm's: every one, and some by name.

A random sample unless FERRULE_EXHAUSTIVE=1.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest
from campaign import all_faults, chosen
from covering import EXHAUSTIVE
from faulty_board import FaultyBoard
from needs import require_module, require_variable
from small_networks import SCALE, int8_input

import ferrule
from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends import BackendId, Device
from ferrule.backends.ethos_u.arm_driver import VARIABLE
from ferrule.backends.ethos_u.configuration import configuration
from ferrule.backends.ethos_u.registers import TABLE
from ferrule.devices import (
    BusErrorAt,
    DmaErrorAt,
    Fault,
    Flip,
    FlippedData,
    FlippedValue,
    NeverDone,
    RegisterAccess,
    StuckBit,
    Transfer,
    WrongId,
)
from ferrule.devices.model import NoInterrupt
from ferrule.graph import Array
from ferrule.link import RunFailedError

pytestmark = [pytest.mark.cc, pytest.mark.emu]

LOG = logging.getLogger(__name__)
SAMPLED = 30
X = np.random.default_rng(0).integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)
OFFSET = {register.name: register.offset for register in TABLE}
PLACES = {OFFSET[name] for name in ("QBASE", "QSIZE", "QCONFIG", "REGIONCFG", "BASEP0", "BASEP1", "BASEP2")}
"""Registers that say what the NPU reads and writes; Arm's driver does not read them back."""
CMD = OFFSET["CMD"]
"""The register that starts it."""
OUTSIDE = "device npu0: DMA outside of its buffers"


def network() -> ferrule.Network:
    """Return a convolution and a fully connected layer, so that the stream has weights and a DMA transfer."""
    generator = np.random.default_rng(4)

    def weights(*shape: int) -> Array:
        return generator.integers(-127, 128, shape, dtype=np.int8)

    bias = generator.integers(-300, 300, 4, dtype=np.int32)
    half = ferrule.Quantization.of(0.02)
    built = ferrule.Network("small")
    built.add_input(int8_input("x", *X.shape))
    image = built.add_conv2d_layer(
        "x", weights(4, 3, 3, 4), bias, padding="same", weights_quantization=half, quantization=SCALE, name="a"
    )
    flat = built.add_reshape_layer(image, (1, 144))
    last = built.add_fully_connected_layer(
        flat, weights(5, 144), weights_quantization=half, quantization=SCALE, name="b"
    )
    built.set_outputs([last])
    return built


@frozen(eq=False)
class Built:
    """A firmware whose network runs on the NPU as a whole, and what it computes."""

    driver: str
    use_interrupt: bool
    firmware: ferrule.Firmware
    expected: Array


ROWS = [
    pytest.param((driver, interrupt), id=f"{driver}-{'interrupt' if interrupt else 'polling'}", marks=marks)
    for driver, interrupt, marks in (
        ("ferrule", True, ()),
        ("ferrule", False, pytest.mark.nightly),
        ("arm", True, ()),
        ("arm", False, ()),
    )
]


@pytest.fixture(scope="module")
def firmwares() -> dict[tuple[str, bool], Built]:
    return {}


@pytest.fixture
def built(request: pytest.FixtureRequest, firmwares: dict[tuple[str, bool], Built]) -> Built:
    """The firmware with a driver, built once."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    require_module("ethosu.vela", "pip install 'ferrule[ethos-u]'")
    driver, interrupt = request.param
    if driver == "arm":
        require_variable(VARIABLE)
    if (driver, interrupt) not in firmwares:
        binding = {"driver": driver, "use_interrupt": int(interrupt)}
        npu = Device(name="npu0", backend=BackendId("EthosU"), binding=binding)
        firmware = ferrule.compile(network(), board="mps2-an505", backends=["EthosU"], devices=[npu])
        (expected,) = firmware.network.run([X])
        firmwares[driver, interrupt] = Built(
            driver=driver, use_interrupt=interrupt, firmware=firmware, expected=expected
        )
    return firmwares[driver, interrupt]


@pytest.fixture
def board(built: Built) -> Iterator[FaultyBoard]:
    """The firmware on a board that has run once without a fault."""
    started = FaultyBoard(built.firmware)
    clean = started.run([X], None)
    assert not isinstance(clean, str)
    assert clean.tolist() == built.expected.tolist()
    yield started
    started.stop()


both = pytest.mark.parametrize("built", ROWS, indirect=True)


def is_misled(board: FaultyBoard, built: Built, fault: Fault) -> bool:
    """Return whether the NPU was made to read or write other memory than the stream says."""
    if isinstance(fault, FlippedData):
        return True  # perhaps a command
    places = {CMD} if built.driver == "ferrule" else {CMD, *PLACES}
    flipped = fault.at if isinstance(fault, FlippedValue) else None
    return any(each.number == flipped and each.write and each.offset in places for each in board.accesses)


def check(fault: Fault, ended: Array | str, expected: Array, *, misled: bool) -> None:
    """A run gives the correct output or an error; only changed data or addresses may give a different output."""
    if isinstance(ended, str) and misled and OUTSIDE in ended:
        return
    if isinstance(ended, str):
        assert "status -" in ended or "of device npu0, which refuses it: injected" in ended, (fault, ended)
        assert isinstance(fault, BusErrorAt) == ("injected" in ended), (fault, ended)
    elif not misled:
        assert not isinstance(fault, DmaErrorAt | BusErrorAt), fault
        assert ended.tolist() == expected.tolist(), fault


@both
def test_each_fault_at_each_access(built: Built, board: FaultyBoard) -> None:
    faults = list(all_faults(board.injector))
    ends = {"right": 0, "failed": 0, "different": 0}
    for fault in chosen(faults, SAMPLED, seed=7):
        ended = board.run([X], fault)
        misled = is_misled(board, built, fault)
        check(fault, ended, built.expected, misled=misled)
        same = not isinstance(ended, str) and ended.tolist() == built.expected.tolist()
        ends["failed" if isinstance(ended, str) else "right" if same else "different"] += 1
        if misled:
            board.restart()  # it may have written over the driver's context
        after = board.run([X], None)
        if isinstance(ended, str) and isinstance(after, str):
            assert DEVICE in after, fault  # the device was lost, and may have written over the input
            after = board.run([X], None)
        assert not isinstance(after, str), (fault, after)
        assert after.tolist() == built.expected.tolist(), fault
    LOG.info("%s: %d faults, %s, %d starts of the board", built.driver, len(faults), ends, board.starts)
    assert ends["right"]
    assert ends["failed"]
    if EXHAUSTIVE:
        assert ends["different"]


class Zeros(Fault):
    """There is nothing at the registers' addresses, which read as zero."""

    @override
    def on_read(self, access: RegisterAccess) -> int:
        return 0


@frozen
class Replaced(Fault):
    """One word of the command stream arrives with other bits flipped."""

    byte: int
    mask: int

    @override
    def on_transfer(self, transfer: Transfer) -> Flip | None:
        return Flip(byte=self.byte % transfer.size_bytes, mask=self.mask) if transfer.number == 0 else None


@frozen
class WrongAddress(Fault):
    """A base address loses or gains a bit on its way."""

    register: str
    mask: int

    @override
    def on_write(self, access: RegisterAccess) -> int | None:
        return access.value ^ self.mask if access.offset == OFFSET[self.register] else access.value


NEWER, OLDER = 0x1090_4001, 0x0090_4001
"""Values of ID: another minor and another major version of the architecture than the stream's, 1.0."""
LAST = -4
"""The place of STOP, which ends the stream."""
UNAVAILABLE, DEVICE = "status -5 (UNAVAILABLE)", "status -12 (DEVICE)"
NAMED: dict[str, tuple[Fault, str, str]] = {
    "no registers": (Zeros(), UNAVAILABLE, DEVICE),
    "other MACs": (
        WrongId(offset=OFFSET["CONFIG"], value=configuration("ethos-u55-256").register),
        UNAVAILABLE,
        DEVICE,
    ),
    "another product": (
        WrongId(offset=OFFSET["CONFIG"], value=configuration("ethos-u65-256").register),
        UNAVAILABLE,
        UNAVAILABLE,
    ),
    "an older architecture": (WrongId(offset=OFFSET["ID"], value=OLDER), UNAVAILABLE, DEVICE),
    "a reset that does not end": (StuckBit(offset=OFFSET["STATUS"], bit=3, level=True), DEVICE, DEVICE),
    "an unknown command": (Replaced(byte=LAST, mask=0xFF), DEVICE, DEVICE),
    "no end of the stream": (Replaced(byte=LAST, mask=0x01), DEVICE, DEVICE),
    "a base in no memory": (WrongAddress(register="BASEP1", mask=1 << 31), DEVICE, OUTSIDE),
    "a base in memory of others": (WrongAddress(register="BASEP1", mask=1 << 16), DEVICE, OUTSIDE),
    "a refused transfer": (DmaErrorAt(at=1), DEVICE, DEVICE),
}
"""Faults, and what a run with Ferrule's driver and one with Arm's report. Arm's driver does not read its addresses
back, so that the NPU uses wrong ones; the emulated board then names the NPU."""


@both
@pytest.mark.parametrize("name", NAMED)
def test_what_is_reported(built: Built, board: FaultyBoard, name: str) -> None:
    fault, own, arm = NAMED[name]
    ended = board.run([X], fault)
    assert isinstance(ended, str)
    assert (own if built.driver == "ferrule" else arm) in ended
    after = board.run([X], None)
    assert not isinstance(after, str)
    assert after.tolist() == built.expected.tolist()


@both
def test_a_newer_architecture_is_accepted(built: Built, board: FaultyBoard) -> None:
    ended = board.run([X], WrongId(offset=OFFSET["ID"], value=NEWER))
    assert not isinstance(ended, str)
    assert ended.tolist() == built.expected.tolist()


@both
def test_an_interrupt_that_never_comes(built: Built, board: FaultyBoard) -> None:
    """The thread sleeps as long as the stream may take, and then looks at the device itself."""
    board.injector.attach(irq=NoInterrupt())
    ended = board.run([X], None)
    assert not isinstance(ended, str)
    assert ended.tolist() == built.expected.tolist()


@both
def test_a_hang_ends_with_the_time_limit(built: Built, board: FaultyBoard) -> None:
    """The device ignores its reset, too, so the run says that it could not be stopped.

    It may still write to the scratch, in which the link stores the next input, so the run that stops it fails as well.
    """
    started = next(each.number for each in board.injector.accesses if each.offset == OFFSET["CMD"] and each.value & 1)
    ended = board.run([X], NeverDone(since=started + 1))
    assert isinstance(ended, str)
    assert DEVICE in ended
    stopped = board.run([X], None)
    assert isinstance(stopped, str)
    assert DEVICE in stopped
    after = board.run([X], None)
    assert not isinstance(after, str)
    assert after.tolist() == built.expected.tolist()


@both
def test_the_report_names_the_device(built: Built) -> None:
    with pytest.raises(
        RunFailedError, match=r"\(DEVICE\): layer 'b/ethos_u' on EthosU/npu0\nnpu0: .*injected: transfer 1 "
    ):
        built.firmware.run([X], faults={"npu0": NAMED["a refused transfer"][0]})
