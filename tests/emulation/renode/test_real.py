# SPDX-License-Identifier: Apache-2.0
"""The facts of the recorded sessions, checked with the Renode that RENODE points to."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest
from needs import lacking, lacking_variable
from renode_install import renode_program

from ferrule.emulation import Machine
from ferrule.emulation.renode import (
    ControlError,
    ExternalControl,
    FramedControl,
    KeywordError,
    LegacyControl,
    Monitor,
    RenodeConnectionError,
    RobotServer,
    Stream,
    Width,
)
from ferrule.emulation.renode.bridge import SOURCE
from ferrule.emulation.renode.install import release
from ferrule.emulation.renode.process import RenodeProcess

MONITOR_PORT = 4567
RAM = 0x2000_0100


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenodeProcess]:
    """A running Renode with a Monitor."""
    program = renode_program()
    if program is None:
        lacking_variable("RENODE")
    found = RenodeProcess(program, tmp_path_factory.mktemp("renode"), "-P", str(MONITOR_PORT))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def server(process: RenodeProcess) -> Iterator[RobotServer]:
    """The robot server of the running Renode."""
    with RobotServer(process.robot_port(), connector=process.connect) as found:
        yield found


@pytest.fixture
def machine(server: RobotServer, build: Callable[..., Machine]) -> Machine:
    """A machine `m` with the firmware `echo`, not started."""
    found = build("echo")
    server.reset()
    server.execute('mach create "m"')
    server.execute(f"machine LoadPlatformDescription @{found.board.platform}")
    server.execute(f"sysbus LoadELF @{found.elf}")
    return found


def test_version(server: RobotServer) -> None:
    assert release(server.execute("version")) >= (1, 15)
    assert {"ExecuteCommand", "WaitForLineOnUart", "CreateTerminalTester"} <= set(server.keywords())


def test_keywords_that_fail(server: RobotServer, machine: Machine) -> None:
    with pytest.raises(KeywordError, match="No such command or device: nosuch"):
        server.execute("nosuch command")
    with pytest.raises(KeywordError, match=r"nosuch\.repl"):
        server.execute("machine LoadPlatformDescription @nosuch.repl")
    with pytest.raises(KeywordError, match='Keyword "NoSuchKeyword" not found'):
        server.run("NoSuchKeyword")
    with pytest.raises(KeywordError, match="Arguments types do not match"):
        server.run("WaitForLineOnUart")


def test_a_terminal_tester(server: RobotServer, machine: Machine) -> None:
    tester = server.terminal_tester("sysbus.uart0", 1.0)
    server.start()
    for byte in b"hi\x5f":  # the firmware flips bits: the last byte becomes a line feed
        server.execute(f"sysbus.uart0 WriteChar {byte:#x}")
    line = tester.wait_for_line(bytes(byte ^ 0x55 for byte in b"hi").decode(), timeout_s=1.0)
    assert line.line == "=<" or release(server.execute("version")) < (1, 16)  # 1.15 returns an empty line here
    with pytest.raises(KeywordError, match="Terminal tester failed"):
        tester.wait_for_line("never printed", timeout_s=0.01)
    assert "=<" in tester.report()
    assert server.execute("pause") == "Pausing emulation..."


def test_the_monitor(process: RenodeProcess, server: RobotServer, machine: Machine) -> None:
    with Stream(process.connect(MONITOR_PORT), name="Monitor", timeout_s=10) as stream:
        try:
            monitor = Monitor(stream)
        except RenodeConnectionError as error:
            lacking(
                f"an answer of Renode's Monitor ({error})",
                "run the test again: the Monitor does not answer after some starts",
                rare=True,
            )
        assert "version" in monitor.banner
        assert "Renode, version" in monitor.execute("version")
        assert monitor.execute("nosuch command") == "No such command or device: nosuch"
        assert monitor.execute('mach set "m"') == ""
        assert monitor.machine == "m"
        monitor.execute(f"sysbus WriteDoubleWord {RAM:#x} 0x12345678")
        assert int(monitor.execute(f"sysbus ReadDoubleWord {RAM:#x}"), 0) == 0x1234_5678


def test_external_control(process: RenodeProcess, server: RobotServer, machine: Machine) -> None:
    found = release(server.execute("version"))
    if found < (1, 16):
        lacking_variable("RENODE", "External Control in Renode")
    port = process.free_port()
    server.execute(f'emulation CreateExternalControlServer "control" {port}')
    stream = Stream(process.connect(port), name="external control", timeout_s=60)
    with ExternalControl(LegacyControl(stream) if found == (1, 16) else FramedControl(stream)) as control:
        here = control.machine("m")
        assert control.time_s() == 0.0
        control.run_for(0.001)
        assert control.time_s() == 0.001
        data = bytes(range(16))
        control.write(here, RAM, data)
        assert control.read(here, RAM, 16) == data
        assert control.read(here, RAM, 4, width=Width.DOUBLE_WORD) == data
        control.write(here, RAM, struct.pack("<II", 1, 2), width=Width.DOUBLE_WORD)
        assert control.read(here, RAM, 8) == struct.pack("<II", 1, 2)
        with pytest.raises(ControlError, match="Machine not found"):
            control.machine("nosuch")


def test_bridge_compiles(server: RobotServer) -> None:
    server.execute(f"include @{SOURCE}")
    server.reset()
    server.execute('mach create "m"')
    entry = "npu: Miscellaneous.FerruleBridge @ sysbus 0x1000 { port: 1; size: 0x1000; frequency: 1000000 }"
    with pytest.raises(KeywordError, match="The model behind port 1 does not answer"):
        server.execute(f'machine LoadPlatformDescriptionFromString "{entry}"')
