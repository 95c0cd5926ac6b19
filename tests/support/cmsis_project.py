# SPDX-License-Identifier: Apache-2.0
"""Generated projects for CMSIS: written, read, and built through their CMake list."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from children import ran
from needs import lacking, require_module, require_program, require_variable

from ferrule import Network, generate
from ferrule.boards import load_board
from ferrule.emulation import Machine, engine
from ferrule.firmware import Job, Project
from ferrule.firmware.platforms.cmsis import CMSIS_PLATFORM

IN_TURNS = {
    "status": 0,
    "runs": 40,
    "overlaps": 0,
    "in_time": 0,
    "too_late": -9,
    "from_interrupt": -10,
    "still_locked": 2,
}
"""The report of tests/platforms/cmsis/contention.c when two threads take turns.

A third thread then holds the device for longer than a fourth waits, an interrupt tries to open it in vain, and a kernel
that was locked before an open is still locked after it.
"""


def write(
    folder: Path,
    network: Network,
    *,
    board: str | Path = "mps2-an386",
    job: Job | None = None,
    optimization: str = "O2",
    force: bool = False,
    toolchain: str = "arm-none-eabi-gcc",
) -> Project:
    """Generate a project."""
    return generate(
        network,
        replace(
            job or Job(),
            board=board,
            toolchain=toolchain,
            optimization=optimization,
            platform="cmsis",
            out=folder,
        ),
        force=force,
    )


def read_yaml(path: Path) -> Any:  # noqa: ANN401 whatever stands there
    """Return a file parsed as YAML 1.2, in which `on` is a string."""
    require_module("ruamel.yaml", "pip install -e '.[dev]'")
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def cmake_lists(folder: Path) -> dict[str, list[str]]:
    """Return the lists that ferrule.cmake sets, by name."""
    text = re.sub(r"#.*", "", (folder / "ferrule.cmake").read_text(encoding="utf-8"))
    return {name: words.split() for name, words in re.findall(r"set\((\w+)\s([^)]*)\)", text)}


def listed(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files in the groups of a project or layer, relative to its file."""
    for group in content["groups"]:
        for file in group["files"]:
            yield str(file["file"]).removeprefix("./")


def packs() -> dict[str, str]:
    """Return the folders CMSIS_PATH and CMSIS_RTX_PATH by variable; skip the test if one is not set."""
    return {name: str(require_variable(name)) for name in ("CMSIS_PATH", "CMSIS_RTX_PATH")}


def build(folder: Path, *options: str) -> Path:
    """Build a project with the commands of `ferrule run`, and return the firmware's path."""
    packs()
    tools = CMSIS_PLATFORM.tools
    assert tools is not None
    for need in tools.needs():
        if not need.found:
            lacking(need.name, need.remedy)
    steps = tools.steps(folder, folder / "build", "")
    for argv in ((*steps[0][1], *options), *(argv for _, argv in steps[1:])):
        done = ran(argv, cwd=folder, timeout=600)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return tools.program(folder / "build")


def contention(elf: Path, name: str = "qemu") -> dict[str, int]:
    """Run contention.c in an emulator, and return its report by the names in `IN_TURNS`."""
    if name == "qemu":
        require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    received = b""
    with engine(name).start(Machine(board=load_board("mps2-an386"), elf=elf)) as session:
        channel = session.channel()
        while len(received) < 4 * len(IN_TURNS):
            chunk = channel.read(100, 20)
            assert chunk, f"received only {len(received)} bytes"
            received += chunk
    return dict(zip(IN_TURNS, struct.unpack(f"<{len(IN_TURNS)}i", received), strict=True))
