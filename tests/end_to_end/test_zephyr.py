# SPDX-License-Identifier: Apache-2.0
"""Projects for Zephyr, built with a real tree and run on QEMU's MPS2 and as a program of this host.

The tests run where ZEPHYR_BASE is set; tests/firmware/test_zephyr_project.py covers all that needs no Zephyr tree.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import device_networks
import numpy as np
import pytest
import small_networks
from children import ran
from needs import require_program
from zephyr_tree import TEST_TIMEOUT_S, Tree, zephyr_tree

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.uart_woofles import UartWooflesModel
from ferrule.boards import Board, load_board
from ferrule.codegen import Artifact
from ferrule.emulation import AttachedWire, Machine, engine
from ferrule.firmware import Job, write_project
from ferrule.link import Channel, FirmwareError, LinkSession, SerialChannel
from ferrule.network.samples import random_sample
from ferrule.report.tracing import trace_part
from ferrule.resources import root

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow, pytest.mark.timeout(TEST_TIMEOUT_S)]
PATIENCE_S = 120
CONTENTION = Path(__file__).parents[1] / "platforms" / "zephyr" / "contention"


@pytest.fixture(scope="module")
def tree() -> Tree:
    return zephyr_tree()


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """A model on two SoftNpu devices and the core."""
    return device_networks.artifact()


@pytest.fixture(scope="module")
def project(artifact: Artifact, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zephyr") / "crossing"
    write_project(artifact, Job(toolchain="arm-none-eabi-gcc", platform="zephyr", out=folder))
    return folder


@pytest.fixture(scope="module")
def board(tree: Tree) -> Board:
    """The tree's MPS2 board, with the link on its second UART."""
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    described = load_board(tree.mps2_board().replace("/", "-").replace("_", "-"))
    return replace(described, link_uart=described.peripheral("uart1"))


def check_link(artifact: Artifact, channel: Channel, *, measured: bool) -> None:
    """Run the model over the link: outputs equal the reference bit by bit, and device calls equal the schedule."""
    network = device_networks.crossing()
    with LinkSession(channel, timeout_s=10, run_timeout_s=PATIENCE_S) as session:
        info = session.model_info()
        assert (info.name, info.operator_count) == ("crossing", len(artifact.operators))
        assert bool(info.stack_bytes) is measured
        for seed in range(3):
            x = device_networks.sample(seed)
            run = session.run([x], profile=True, trace=True)
            for output, expected in zip(run.outputs, network.run([x]), strict=True):
                assert output.tobytes() == expected.tobytes()
            assert trace_part(artifact, run.calls).as_planned
            if measured:
                assert run.unit == "ticks"
                assert run.total > 0
                assert 0 < run.stack_used < run.stack.size_bytes


def read_until(channel: Channel, wanted: str, text: str = "") -> str:
    """Return the console's output up to the first match of a pattern."""
    end = time.monotonic() + PATIENCE_S
    while re.search(wanted, text) is None:
        assert time.monotonic() < end, f"{wanted!r} not found in {text!r}"
        text += channel.read(4096, 1).decode(errors="replace")
    return text


def check_shell(console: Channel, link: Callable[[], Channel]) -> None:
    """The shell describes the model and runs it; a host on the link notices the run."""
    channel = link()
    session = LinkSession(channel, timeout_s=10)
    session.hello()
    console.write(b"ferrule info\r\n")
    assert "devices: npu0, npu1" in read_until(console, r"devices: [^\n]*\n")
    console.write(b"ferrule run\r\n")
    text = read_until(console, r"late begins with\s+00000000: [^\n]*\n")
    assert "status 0" in text
    found = re.search(r"late begins with\s+00000000: ((?:[0-9a-f]{2} ){5})", text)
    assert found is not None
    expected = device_networks.crossing().run([device_networks.sample() * 0])[1]
    assert bytes.fromhex(found[1]) == expected.tobytes()
    with pytest.raises(FirmwareError, match="hello"):
        session.run([device_networks.sample()])
    assert session.hello().firmware == "ferrule"


def test_mps2_in_emulation(tree: Tree, board: Board, artifact: Artifact, project: Path, tmp_path: Path) -> None:
    elf = tree.build(project, tmp_path / "build", tree.mps2_board())
    for name in ("qemu", "unicorn"):
        with engine(name).start(Machine(board=board, elf=elf)) as session:
            console = session.channel("console")
            assert "crossing ran in" in read_until(console, r"ran in \d+ us")
            check_link(artifact, session.channel("link"), measured=True)
            check_shell(console, lambda session=session: session.channel("link"))  # type: ignore[misc]


def test_an_accelerator_behind_a_uart(tree: Tree, board: Board, tmp_path: Path) -> None:
    """The accelerator has uart1, the first UART after the console's, and the link has the next."""
    network = small_networks.dense()
    device = Device(name="far", backend=BackendId("UartWoofles"), binding={"memory_bytes": 1024, "store_bytes": 1024})
    ferrule.generate(
        network,
        backends=("UartWoofles", "CpuAcc"),
        devices=(device,),
        toolchain="arm-none-eabi-gcc",
        optimization="O2",
        platform="zephyr",
        out=tmp_path / "project",
    )
    elf = tree.build(tmp_path / "project", tmp_path / "build", tree.mps2_board())
    described = replace(board, link_uart=board.peripheral("uart2"))
    for name in ("qemu", "unicorn"):
        wire = AttachedWire(name="far", model=UartWooflesModel(memory_bytes=2048), uart="uart1")
        with engine(name).start(Machine(board=described, elf=elf, wires=(wire,))) as session:
            assert "dense ran in" in read_until(session.channel("console"), r"ran in \d+ us|failed at operator")
            link = LinkSession(session.channel("link"), timeout_s=10, run_timeout_s=PATIENCE_S)
            for seed in range(3):
                given = [np.random.default_rng(seed).integers(-128, 128, (1, 6), np.int8)]
                (ours,), (theirs,) = link.run(given).outputs, network.run(given)
                assert np.array_equal(ours, theirs)


def test_one_uart_is_the_links(tree: Tree, board: Board, artifact: Artifact, project: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "one.overlay"
    overlay.write_text("/ {\n\tchosen {\n\t\tferrule,link-uart = &uart0;\n\t};\n};\n")
    chosen = f"-DEXTRA_DTC_OVERLAY_FILE={overlay}"
    refused = tree.try_build(project, tmp_path / "both", tree.mps2_board(), chosen)
    assert refused.returncode != 0
    assert "console and link need a UART each: add -DEXTRA_CONF_FILE=one_uart.conf" in refused.stdout
    alone = f"-DEXTRA_CONF_FILE={project / 'one_uart.conf'}"
    elf = tree.build(project, tmp_path / "one", tree.mps2_board(), chosen, alone)
    with engine("qemu").start(Machine(board=replace(board, link_uart=board.peripheral("uart0")), elf=elf)) as session:
        check_link(artifact, session.channel("link"), measured=True)


@contextmanager
def native(program: Path) -> Iterator[dict[str, SerialChannel]]:
    """Run a native_sim program, and yield channels to its UARTs by name."""
    process = subprocess.Popen([str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    text = ""
    end = time.monotonic() + PATIENCE_S
    pattern = re.compile(r"^(\w+) connected to pseudotty: (\S+)$", re.MULTILINE)
    try:
        while len(found := dict(pattern.findall(text))) < 2:
            assert time.monotonic() < end, text
            if select.select([process.stdout], [], [], 1)[0]:
                text += os.read(process.stdout.fileno(), 4096).decode()
        channels = {name: SerialChannel(path, baud=115_200) for name, path in found.items()}
        yield {"link" if name.endswith("1") else "console": channel for name, channel in channels.items()}
    finally:
        process.kill()
        process.communicate()


def test_native_sim(tree: Tree, artifact: Artifact, project: Path, tmp_path: Path) -> None:
    program = tree.build(project, tmp_path / "build", tree.native_board)
    with native(program) as uarts:
        check_link(artifact, uarts["link"], measured=False)


def test_native_sim_has_an_accelerator_with_registers_in_software(tree: Tree, tmp_path: Path) -> None:
    """The project for a board with the accelerator runs unchanged where there is none."""
    network = small_networks.dense()
    device = Device(name="npu", backend=BackendId("Woofles"), binding={"use_interrupt": 1})
    ferrule.generate(
        network,
        hints={"y": "Woofles/npu"},
        devices=(device,),
        toolchain="arm-none-eabi-gcc",
        platform="zephyr",
        out=tmp_path / "project",
    )
    program = tree.build(tmp_path / "project", tmp_path / "build", tree.native_board)
    with native(program) as uarts, LinkSession(uarts["link"], timeout_s=10, run_timeout_s=PATIENCE_S) as session:
        for seed in range(3):
            given = [np.random.default_rng(seed).integers(-128, 128, (1, 6), np.int8)]
            run = session.run(given, trace=True)
            assert run.outputs[0].tobytes() == network.run(given)[0].tobytes()
            assert run.calls
            assert {call.status for call in run.calls} == {0}


def contention(program: Path, tree: Tree, board: Board | None) -> str:
    """Run the program with two contending threads, and return its output."""
    if board is not None:
        with engine("qemu").start(Machine(board=board, elf=program)) as session:
            return read_until(session.channel("console"), "PASS|FAIL")
    done = ran([str(program), "-stop_at=30"], timeout=PATIENCE_S)
    return done.stdout


def test_threads_contend_under_qemu(tree: Tree, board: Board, tmp_path: Path) -> None:
    program = tree.build(CONTENTION, tmp_path / "build", tree.mps2_board())
    text = contention(program, tree, board)
    assert "runs=40 overlaps=0" in text
    assert "PASS" in text, text


@pytest.mark.parametrize("locks", [True, False])
def test_threads_contend_on_the_host(tree: Tree, tmp_path: Path, locks: bool) -> None:
    """Without the lock the same program finds overlaps, which proves that it can fail."""
    for folder in ("include", "src_c"):
        (tmp_path / folder).symlink_to(root() / folder)
    module = tmp_path / "platforms" / "zephyr"
    shutil.copytree(root() / "platforms" / "zephyr", module)
    if not locks:
        adapter = module / "src" / "zephyr.c"
        text, count = re.subn(r"k_mutex_lock\(&dev->lock, timeout\)", "timeout.ticks == -9", adapter.read_text())
        text, unlocks = re.subn(r"k_mutex_unlock\(&dev->lock\)", "dev == NULL", text)
        assert (count, unlocks) == (1, 1)
        adapter.write_text(text)
    options = (f"-DFERRULE_MODULE={module}", "-DCONFIG_UART_CONSOLE=n")
    text = contention(tree.build(CONTENTION, tmp_path / "build", tree.native_board, *options), tree, None)
    assert ("PASS" in text) is locks, text
    assert ("overlaps=0" in text) is locks, text


def test_two_folders_in_one_application(tree: Tree, board: Board, tmp_path: Path) -> None:
    """The application is the first folder with the main of a project of both models, which the link serves."""
    networks = (small_networks.dense(), small_networks.two_by_two())
    job = Job(toolchain="arm-none-eabi-gcc", platform="zephyr")
    for name, chosen in (("both", networks), ("first", networks[:1]), ("second", networks[1:])):
        ferrule.generate(chosen, replace(job, out=tmp_path / name))
    application = tmp_path / "first"
    (application / "src" / "main.c").write_bytes((tmp_path / "both" / "src" / "main.c").read_bytes())
    with (application / "prj.conf").open("a") as settings:
        settings.write("CONFIG_FERRULE_LINK_MODELS=y\n")
    lists = application / "CMakeLists.txt"
    own = "EXTRA_ZEPHYR_MODULES ${CMAKE_CURRENT_SOURCE_DIR}"
    lists.write_text(lists.read_text().replace(own, f"{own} {tmp_path / 'second'}"))
    elf = tree.build(application, tmp_path / "build", tree.mps2_board())
    with engine("unicorn").start(Machine(board=board, elf=elf)) as session:
        read_until(session.channel("console"), r"dense ran in \d+ us[\s\S]*two by two ran in \d+ us")
        link = LinkSession(session.channel("link"), timeout_s=10, run_timeout_s=PATIENCE_S)
        for index in (1, 0, 1):
            link.choose_model(index)
            given = random_sample(networks[index].inputs, index)
            for found, expected in zip(link.run(given).outputs, networks[index].run(given), strict=True):
                assert found.tobytes() == expected.tobytes()
