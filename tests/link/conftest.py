# SPDX-License-Identifier: Apache-2.0
"""The firmware's end of the link, compiled for the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from host_link import HostChannel, HostFirmware, compile_host_firmware
from needs import require_module, require_sanitizers

from ferrule.link import LinkSession


@pytest.fixture(scope="session")
def build_firmware(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., HostFirmware]:
    """A function that compiles the firmware for the host with further options."""
    require_module("cffi", "pip install 'ferrule[run]'")

    def function(*more: str) -> HostFirmware:
        output = tmp_path_factory.mktemp("link") / "firmware.so"
        traps = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
        compile_host_firmware(host_cc, output, "-shared", "-fPIC", *traps, *more)
        return HostFirmware(output)

    return function


@pytest.fixture(scope="session")
def compiled_firmware(build_firmware: Callable[..., HostFirmware]) -> HostFirmware:
    return build_firmware()


@pytest.fixture
def firmware(compiled_firmware: HostFirmware) -> HostFirmware:
    """The firmware just after reset; each reading of its DWT advances the count by 3 cycles."""
    compiled_firmware.reset()
    return compiled_firmware


@pytest.fixture
def channel(firmware: HostFirmware) -> HostChannel:
    return HostChannel(firmware)


@pytest.fixture
def session(channel: HostChannel) -> LinkSession:
    return LinkSession(channel, timeout_s=0.0)


@pytest.fixture(scope="session")
def sanitized_program(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The firmware as a program that receives its standard input, built with the sanitizers."""
    program = tmp_path_factory.mktemp("sanitized") / "firmware"
    require_sanitizers("address")
    compile_host_firmware(host_cc, program, "-DHOST_MAIN", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    return program
