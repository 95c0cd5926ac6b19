# SPDX-License-Identifier: Apache-2.0
"""Devices that are given up on an emulated board: the drivers of templates and of pages, in a run of a whole firmware.

As test_given_up.py on the host. Here, an executor runs the model, and the engine judges each transfer. Renode has the
models too, and no judge.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alarm import Alarm
from disobedient import Manner, disobedient
from gate import some_of
from given_up import PACKAGES, POLLED_ONLY, model_of, projects
from needs import lacking_variable, require_module
from renode_install import renode_program
from small_networks import SCALE, int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.registry import registry_with
from ferrule.codegen import Program
from ferrule.devices.contract import Breach, ContractError
from ferrule.emulation import AttachedDevice, EngineError
from ferrule.emulation.unicorn.contract import HEALTH_OFFSET, LOST
from ferrule.graph import Array
from ferrule.link import RunFailedError
from ferrule.link.protocol import Status
from ferrule.testing import Board, start

pytestmark = [pytest.mark.cc, pytest.mark.emu]

PROGRAM = Path(__file__).parent / "give_up.c"
ALARM, ALARM_LINE = 0x4FF0_0000, 60
"""As in the program."""
SIZE = 16
CYCLES_PER_US = 25
WORK_US = 40_000
"""How long the device works: longer than four stops that it ignores, and the traffic of the link in between."""
STOP_US = 1000
"""FERRULE_DEVICE_STOP_US."""
HOWS = {"not at all": 0, "time-out": 1, "deadline": 2, "cancelled": 3, "look": 4}
WAITS = ("time-out", "deadline", "cancelled")
EXPECTED = {"time-out": Status.TIMEOUT, "deadline": Status.TIMEOUT, "cancelled": Status.CANCELLED}
MOMENTS_US = (300, 650, 2500)
"""After the first ones the device has begun to work, and it has not ended after the last."""
Row = tuple[str, bool, str]
Build = Callable[[str, bool], ferrule.Firmware]


def rows(*hows: str, kept: Collection[Row]) -> pytest.MarkDecorator:
    """Return a parametrize mark: each driver, polled or by interrupt, given up in these ways; the gate runs `kept`."""
    every = [
        (style, interrupt, how)
        for style in PACKAGES
        for interrupt in (False, True)
        for how in hows
        if not (interrupt and style in POLLED_ONLY)
    ]
    return pytest.mark.parametrize(("style", "interrupt", "how"), some_of(every, kept))


def network(style: str) -> ferrule.Network:
    """Return one layer for the device."""
    made = ferrule.Network("given")
    made.add_input(int8_input("x", 1, SIZE))
    if style in {"accelerator", "yap"}:
        made.add_input(int8_input("z", 1, SIZE))
        made.add_maximum_layer("x", "z", name="y")
    else:
        weights = np.random.default_rng(4).integers(-127, 128, (SIZE, SIZE), dtype=np.int8)
        scale = ferrule.Quantization.of(0.02)
        made.add_fully_connected_layer("x", weights, weights_quantization=scale, quantization=SCALE, name="y")
    made.set_outputs(["y"])
    return made


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Build]:
    """Build the firmware of a style, with the program in place of the project's main.c."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    folder = tmp_path_factory.mktemp("boards")
    made: dict[tuple[str, bool], ferrule.Firmware] = {}
    with projects(folder) as packages:

        def firmware(style: str, interrupt: bool) -> ferrule.Firmware:
            if (style, interrupt) not in made:
                made[style, interrupt] = compiled(style, packages[style], interrupt, folder / f"{style}-{interrupt}")
            return made[style, interrupt]

        yield firmware


def compiled(style: str, package: Path, interrupt: bool, out: Path) -> ferrule.Firmware:
    module: Any = model_of(package.name)
    for name, value in {
        "CYCLES_OF_STARTING": WORK_US * CYCLES_PER_US,
        "START_CYCLES": WORK_US * CYCLES_PER_US,
        "cycles": lambda *_: WORK_US * CYCLES_PER_US,
    }.items():
        if hasattr(module, name):
            setattr(module, name, value)
    backend = BackendId(package.name.capitalize())
    binding = {} if style in POLLED_ONLY else {"use_interrupt": int(interrupt)}
    keywords: Any = {
        "board": "mps2-an386",
        "backends": [backend, "CpuAcc"],
        "devices": [Device(name="npu0", backend=backend, binding=binding)],
        "registry": registry_with([package]),
        "out": out,
    }
    ferrule.generate(network(style), **keywords)
    known = f"#define HEALTH_OFFSET {HEALTH_OFFSET}u\n#define LOST {LOST}u\n"
    (out / "main.c").write_text(known + PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    return ferrule.compile(network(style), **keywords)


def board(firmware: ferrule.Firmware, manner: Manner, *, late_us: int = 0, engine: str = "unicorn") -> Board:
    """Start the firmware with a device that obeys in this manner, some so much later."""
    (use,) = firmware.artifact.devices
    model: Any = disobedient(use.driver.model, manner, cycles=late_us * CYCLES_PER_US)  # type: ignore[arg-type]
    artifact = replace(firmware.artifact, devices=(replace(use, driver=replace(use.driver, model=model)),))
    changed = replace(firmware, artifact=artifact, program=Program(artifacts=(artifact,)))
    alarm = AttachedDevice(name="alarm", model=Alarm(), address=ALARM, interrupt=ALARM_LINE)
    return start(changed, devices=[alarm], engine=engine)


def outputs(board: Board, how: str, at_us: int) -> list[Array]:
    """Run in a way that the firmware reads from its first input, and return the outputs."""
    network = board._firmware.network  # type: ignore[union-attr]
    dice = np.random.default_rng(3)
    given = [dice.integers(-128, 128, info.shape).astype(np.int8) for info in network.inputs]
    given[0][0, :8] = np.frombuffer(struct.pack("<II", HOWS[how], at_us), np.int8)
    found = board.run(given)
    if how != "look":
        assert found[0].tobytes() == network.run(given)[0].tobytes()
    return found


def run(board: Board, how: str, at_us: int = 0) -> Status:
    """Run, give up after some time, and return the status; a result must be right."""
    try:
        outputs(board, how, at_us)
    except RunFailedError as error:
        return Status(error.status)
    return Status.OK


def look(board: Board, us: int = 0) -> tuple[int, bool]:
    """Return how many bytes of the output change in some time, and whether the device is lost then."""
    written, lost = outputs(board, "look", us)[0].reshape(-1)[:2].tolist()
    return written, bool(lost)


KEPT = [("npu", True, "cancelled"), ("tern", False, "deadline"), ("accelerator", True, "time-out")]


@rows(*WAITS, kept=KEPT)
def test_a_device_that_is_given_up_never_writes_again(build: Build, style: str, interrupt: bool, how: str) -> None:
    with board(build(style, interrupt), Manner.SOUND) as running:
        assert running.unchecked == ""
        check_sound(running, how)


@rows(*WAITS, kept=KEPT)
def test_a_device_that_ignores_its_stop_is_lost(build: Build, style: str, interrupt: bool, how: str) -> None:
    with board(build(style, interrupt), Manner.DEAF) as running:
        check_deaf(running, how)


@rows(*WAITS, kept=[("npu", True, "time-out")])
def test_a_stop_may_take_time(build: Build, style: str, interrupt: bool, how: str) -> None:
    with board(build(style, interrupt), Manner.SLOW, late_us=STOP_US // 2) as running:
        check_sound(running, how)


def check_sound(board: Board, how: str) -> None:
    """Give a device up that stops, and check that nothing is written afterwards, and that the next run works."""
    for at_us in MOMENTS_US:
        assert run(board, how, at_us) is EXPECTED[how], at_us
        assert look(board, 2 * WORK_US) == (0, False)
    assert run(board, "not at all") is Status.OK


def check_deaf(board: Board, how: str) -> None:
    """Give a device up that does not stop: runs are refused until it is found, and the one after that works."""
    assert run(board, how, MOMENTS_US[0]) is Status.DEVICE
    assert look(board) == (0, True)
    assert run(board, "not at all") is Status.DEVICE
    assert look(board, 2 * WORK_US) == (SIZE, True)
    assert run(board, "not at all") is Status.DEVICE  # it is stopped now, and may have written over the inputs
    assert look(board) == (0, False)
    assert run(board, "not at all") is Status.OK


@rows(*WAITS, kept=KEPT)
def test_a_device_that_says_that_it_has_stopped_and_goes_on_is_named(
    build: Build, style: str, interrupt: bool, how: str
) -> None:
    with board(build(style, interrupt), Manner.LYING) as running:
        assert run(running, how, MOMENTS_US[0]) is EXPECTED[how]
        assert look(running) == (0, False)
        with pytest.raises(EngineError) as caught:
            look(running, 2 * WORK_US)
    check_named(caught.value, Breach.LATE)
    assert "which was aborted, since the run has failed with -" in str(caught.value)


@rows("not at all", kept=[("accelerator", True, "not at all")])
def test_transfers_that_come_late_are_named(build: Build, style: str, interrupt: bool, how: str) -> None:
    """The command was a success by what the device says."""
    with (
        board(build(style, interrupt), Manner.POSTING, late_us=100) as running,
        pytest.raises(EngineError) as caught,
    ):
        run_and_look(running, how)
    check_named(caught.value, Breach.LATE, Breach.UNWRITTEN)


def run_and_look(board: Board, how: str) -> None:
    """Run, and look what is written afterwards."""
    assert run(board, how) is Status.OK
    look(board, WORK_US)


def check_named(error: EngineError, *breaches: Breach) -> None:
    """Check that the device is named with its layer."""
    cause = error.__cause__
    assert isinstance(cause, ContractError)
    assert cause.device == "npu0"
    assert cause.command.startswith("layer '")
    assert cause.breach in breaches


@pytest.mark.parametrize("style", ["accelerator", "npu"])
@pytest.mark.parametrize("manner", [Manner.SOUND, Manner.DEAF])
def test_on_renode(build: Build, style: str, manner: Manner) -> None:
    """It has the models, and no judge: one that lies could not be told. A deaf one ends its work between two runs."""
    if renode_program() is None:
        lacking_variable("RENODE")
    with board(build(style, True), manner, engine="renode") as running:
        assert "renode" in running.unchecked
        if manner is Manner.SOUND:
            check_sound(running, "cancelled")
            return
        assert run(running, "time-out", MOMENTS_US[0]) is Status.DEVICE
        assert run(running, "not at all") is Status.DEVICE
        look(running, 2 * WORK_US)
        statuses = [run(running, "not at all") for _ in range(2)]
        assert statuses in ([Status.DEVICE, Status.OK], [Status.OK] * 2)  # it was found by the first, or before
        assert look(running, WORK_US) == (0, False)
