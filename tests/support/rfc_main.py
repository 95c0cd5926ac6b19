# SPDX-License-Identifier: Apache-2.0
"""The program in the first form of TVM's RFC (tests/device/rfc/first_*) on two devices."""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
from small_networks import SCALE, int8_input, with_products

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles.model import WooflesModel
from ferrule.boards import Board
from ferrule.emulation import AttachedDevice, Machine, engine
from ferrule.firmware import Job
from ferrule.graph import Array

BASE = 0x4008_0000
"""The address of Woofles."""
ELSEWHERE = 0x4FF0_0000
"""An address without a device, for generated C whose address the program replaces."""
FOLDER = Path(__file__).parents[1] / "device" / "rfc"


def rfc_network() -> Network:
    """Return the network "mynetwork": ADD and FULLY_CONNECTED, from `x` [1, 6] to `y` [1, 4]."""
    generator = np.random.default_rng(6)
    network = Network("mynetwork")
    network.add_input(int8_input("x", 1, 6))
    network.add_add_layer("x", "x", quantization=SCALE, name="twice")
    return with_products(network, "twice", generator)


def rfc_job(base: int = BASE, **binding: int) -> Job:
    """Return the job with devices named after their backends; `base` is the address in the generated C."""
    woofles = Device(name="Woofles", backend=BackendId("Woofles"), binding={"base": base, **binding})
    return Job(hints={"twice": "SoftNpu", "y": "Woofles"}, devices=(woofles,), toolchain="arm-none-eabi-gcc")


def write_rfc_main(platform: str, path: Path, *, interrupt: int | None = None) -> None:
    """Write the program for "host", "bare_metal", "zephyr" or "cmsis", and beside it the header that it includes.

    With `interrupt`, the program for bare metal handles the interrupt of Woofles.
    """
    given = ", ".join(map(str, _sample().reshape(-1)))
    program = (FOLDER / f"first_{platform}.c").read_text(encoding="utf-8")
    macros = f"#define INPUT {given}\n" + ("" if interrupt is None else f"#define INTERRUPT {interrupt}u\n")
    path.write_text(macros + program, encoding="utf-8")
    shutil.copy(FOLDER / "first_form.h", path.parent)


def rfc_result() -> bytes:
    """Return the result that the program is expected to send: FERRULE_OK and the outputs of the reference."""
    return struct.pack("<i", 0) + b"".join(output.tobytes() for output in rfc_network().run([_sample()]))


def _sample() -> Array:
    return np.random.default_rng(5).integers(-30, 30, (1, 6)).astype(np.int8)


def rfc_run(board: Board, elf: Path, *, link: str = "", interrupt: int | None = None) -> bytes:
    """Run the program on a board with Woofles at BASE, and return what it sends; `link` names the UART."""
    wired = replace(board, link_uart=board.peripheral(link)) if link else board
    npu = AttachedDevice(name="Woofles", model=WooflesModel(), address=BASE, interrupt=interrupt)
    received, wanted = b"", len(rfc_result())
    with engine("unicorn").start(Machine(board=wired, elf=elf, devices=(npu,))) as session:
        channel = session.channel("link")
        while len(received) < wanted:
            chunk = channel.read(wanted - len(received), 20)
            assert chunk, f"received {received!r}"
            received += chunk
    return received
