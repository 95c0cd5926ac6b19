# SPDX-License-Identifier: Apache-2.0
"""Programs with a linker script that is not Ferrule's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ferrule.boards import load_board
from ferrule.firmware import Group, Toolchain, read_image
from ferrule.resources import root

WORKSPACE_BYTES = 40_000
WEIGHTS_BYTES = 1000
PROGRAM = f"""
#include <stdint.h>
#include "ferrule/section.h"
int main(void);
FERRULE_WEIGHTS _Alignas(16) const uint8_t weights[{WEIGHTS_BYTES}] = {{1, 2, 3}};
FERRULE_WORKSPACE _Alignas(16) volatile uint8_t workspace[{WORKSPACE_BYTES}];
static uint8_t other[8];
int main(void)
{{
    other[0] = workspace[7];
    workspace[other[0]] = weights[other[0]];
    return other[0];
}}
"""


@pytest.mark.cc
def test_a_workspace_takes_no_flash(any_toolchain: Toolchain, programs: Path, tmp_path: Path) -> None:
    source, elf = tmp_path / "program.c", tmp_path / "program.elf"
    source.write_text(PROGRAM)
    board = load_board("mps2-an386")
    flags = (*any_toolchain.compile_flags(board, "O2"), "-Wl,--entry=main", "-nostdlib", "-g")
    script = ("-T", str(programs / "foreign.ld"))
    argv = (*any_toolchain.require(), *flags, *script, f"-I{root() / 'include'}", str(source), "-o", str(elf))
    subprocess.run(argv, check=True, timeout=120)

    image = read_image(elf)
    flash = [segment for segment in image.segments if segment.address < 0x2000_0000]
    assert not [segment for segment in image.segments if segment not in flash]
    assert WEIGHTS_BYTES <= sum(len(segment.data) for segment in flash) < WEIGHTS_BYTES + 1000
    assert image.address_of("weights") < 0x2000_0000 <= image.address_of("workspace")
    assert image.address_of("workspace") % 16 == 0
    assert WORKSPACE_BYTES <= image.groups[Group.BSS] < WORKSPACE_BYTES + 100
    assert image.flash_bytes < WEIGHTS_BYTES + 1000
