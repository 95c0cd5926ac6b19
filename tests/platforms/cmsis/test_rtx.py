# SPDX-License-Identifier: Apache-2.0
"""Generated projects with the real CMSIS 6 and RTX5, on emulated boards.

The tests run where CMSIS_PATH and CMSIS_RTX_PATH name checkouts of ARM-software/CMSIS_6 and ARM-software/CMSIS-RTX.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cmsis_project
import device_networks
import numpy as np
import pytest
import small_networks
import switches
from compare import assert_arrays_equal
from needs import require_module, require_program
from numpy.testing import assert_array_equal

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.boards import load_board
from ferrule.emulation import AttachedDevice, AttachedWire, Machine, engine
from ferrule.emulation.attached import attached_devices, attached_wires
from ferrule.firmware import Job, emit, read_image
from ferrule.graph import Array
from ferrule.link import LinkSession
from ferrule.report.tracing import trace_part

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow]
FOLDER = Path(__file__).parent


@contextmanager
def running(
    elf: Path,
    board: str,
    name: str = "qemu",
    devices: tuple[AttachedDevice, ...] = (),
    wires: tuple[AttachedWire, ...] = (),
) -> Iterator[LinkSession]:
    """Run a firmware in an emulator, and yield a session on its link."""
    if name == "qemu":
        require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    else:
        require_module("unicorn", "pip install 'ferrule[run]'")
    machine = Machine(board=load_board(board), elf=elf, devices=devices, wires=wires)
    with engine(name).start(machine) as session, LinkSession(session.channel()) as link:
        yield link


def samples(network: Network, seed: int = 0) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.integers(-128, 128, info.shape).astype(np.int8) for info in network.inputs]


def build(folder: Path, network: Network, *, board: str = "mps2-an386", job: Job | None = None) -> Path:
    cmsis_project.packs()
    return cmsis_project.build(cmsis_project.write(folder, network, board=board, job=job).folder)


@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505"])
def test_a_model_on_each_core(board: str, tmp_path: Path) -> None:
    network = small_networks.two_by_two()
    elf = build(tmp_path / "project", network, board=board)
    for name in ("qemu", "unicorn"):
        with running(elf, board, name) as link:
            check(link, network)


def check(link: LinkSession, network: Network) -> None:
    info = link.model_info()
    assert info.stack_bytes == 16384 - 8  # the thread's stack, less the kernel's mark
    for seed in range(3):
        inputs = samples(network, seed)
        result = link.run(inputs, profile=seed == 1)
        assert_arrays_equal(result.outputs, network.run(inputs))
        assert 0 < result.stack.run_bytes < result.stack.peak_bytes < 4096
        assert 0 < result.total < 100_000
        assert len(result.counters) == (2 if seed == 1 else 0)


@pytest.mark.parametrize("interrupt", [0, 1])
def test_an_accelerator_with_registers(interrupt: int, tmp_path: Path) -> None:
    """Woofles's model is on the emulated bus; its driver, in a thread of RTX5, waits for the interrupt or polls."""
    network = small_networks.dense()
    device = Device(name="dog", backend=BackendId("Woofles"), binding={"use_interrupt": interrupt})
    job = Job(backends=("Woofles", "CpuAcc"), devices=(device,))
    elf = build(tmp_path / "project", network, job=job)
    artifact = emit(network, job)
    devices = attached_devices(artifact, read_image(elf))
    assert [each.name for each in devices] == ["dog"]
    with running(elf, "mps2-an386", "unicorn", devices) as link:
        for seed in range(2):
            inputs = samples(network, seed)
            result = link.run(inputs, trace=True)
            assert_array_equal(result.outputs[0], network.run(inputs)[0])
            assert len(result.calls) == len(artifact.device_calls)


def test_two_devices(tmp_path: Path) -> None:
    """Two devices of one kind have separate memories, with copies between them."""
    network = device_networks.crossing()
    elf = build(tmp_path / "project", network, job=device_networks.job())
    artifact = device_networks.artifact()
    with running(elf, "mps2-an386") as link:
        for seed in range(3):
            inputs = [device_networks.sample(seed)]
            result = link.run(inputs, trace=True)
            assert trace_part(artifact, result.calls).as_planned
            assert_arrays_equal(result.outputs, network.run(inputs))


def test_an_accelerator_behind_a_usart(tmp_path: Path) -> None:
    """UartWoofles's model is behind a UART; its driver, in a thread of RTX5, sleeps until it answers."""
    network = small_networks.dense()
    device = Device(name="far", backend=BackendId("UartWoofles"), binding={"uart": "uart2"})
    job = Job(backends=("UartWoofles", "CpuAcc"), devices=(device,))
    elf = build(tmp_path / "project", network, job=job)
    artifact = emit(network, job)
    wires = attached_wires(artifact)
    assert [each.uart for each in wires] == ["uart2"]
    for name in ("unicorn", "qemu"):
        with running(elf, "mps2-an386", name, wires=attached_wires(artifact)) as link:
            for seed in range(2):
                inputs = samples(network, seed)
                result = link.run(inputs, trace=True)
                assert_array_equal(result.outputs[0], network.run(inputs)[0])
                assert len(result.calls) == len(artifact.device_calls)


def test_inputs_larger_than_the_ring(tmp_path: Path) -> None:
    """The receiver pauses while the ring is full, so no byte is lost although QEMU sends as fast as it can."""
    network = Network("wide")
    network.add_input(small_networks.int8_input("x", 1, 4000))
    network.add_relu_layer("x", name="y")
    network.set_outputs(["y"])
    elf = build(tmp_path / "project", network)
    with running(elf, "mps2-an386") as link:
        inputs = samples(network)
        (found,) = link.run(inputs).outputs
        assert_array_equal(found, network.run(inputs)[0])


@pytest.mark.parametrize("locked", [True, False])
def test_two_threads_contend(locked: bool, tmp_path: Path) -> None:
    """Two threads of RTX5 use a device in turns; without opening it they overlap."""
    cmsis_project.packs()
    folder = cmsis_project.write(tmp_path / "project", small_networks.dense()).folder
    (folder / "main.c").write_text((FOLDER / "contention.c").read_text(encoding="utf-8"), encoding="utf-8")
    elf = cmsis_project.build(folder, *([] if locked else ["-DCMAKE_C_FLAGS=-DNO_LOCK"]))
    told = cmsis_project.contention(elf)
    if locked:
        assert told == cmsis_project.IN_TURNS
    else:
        assert told["overlaps"] > told["runs"] / 2


SWITCHES_START = "0 osRtxTimer, 0 judge, 0 high, 0 judge, 0 middle, 0 judge, 0 low, 0 judge, 0 twin, 0 judge, 0 idle"
SWITCHES_TURNS = "4 idle, 5 twin, 5 low, 5 twin, 6 low, 6 twin, 6 idle"
"""Twin and low wake together, and have time slices of five ticks."""


@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386", "mps2-an505"])
def test_threads_switch_as_under_qemu(board: str, tmp_path: Path) -> None:
    """The kernel's own trace of its switches: preemption, an inherited priority, a semaphore, time slices, sleep."""
    cmsis_project.packs()
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    require_module("unicorn", "pip install 'ferrule[run]'")
    folder = cmsis_project.write(tmp_path / "project", small_networks.dense(), board=board).folder
    (folder / "main.c").write_text((FOLDER / "switches.c").read_text(encoding="utf-8"), encoding="utf-8")
    machine = Machine(board=load_board(board), elf=cmsis_project.build(folder))
    under_qemu, embedded = (switches.run(name, machine, "link") for name in ("qemu", "unicorn"))
    assert embedded == under_qemu
    assert embedded == switches.expected(SWITCHES_START.split(", "), SWITCHES_TURNS.split(", "), rounds=3)
