# SPDX-License-Identifier: Apache-2.0
"""The instruction sets of an x86-64 processor, by the bits that CPUID reports (Intel SDM, volume 2, CPUID)."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from children import ran
from needs import lacking

from ferrule.backends import cpu_acc
from ferrule.resources import root

pytestmark = pytest.mark.cc

CPUID = """
#include <stdint.h>
extern uint32_t fake_leaf1_c, fake_leaf7_b, fake_leaf7_c, fake_leaf7_d;
#define __get_cpuid(leaf, a, b, c, d) (*(a) = *(b) = *(d) = 0u, *(c) = fake_leaf1_c, 1)
#define __get_cpuid_count(leaf, sub, a, b, c, d) \\
    (*(a) = 0u, *(b) = fake_leaf7_b, *(c) = fake_leaf7_c, *(d) = fake_leaf7_d, 1)
"""
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "ferrule/cpu_acc/host.h"
uint32_t fake_leaf1_c, fake_leaf7_b, fake_leaf7_c, fake_leaf7_d;
int main(int argc, char **argv)
{
    for (int i = 1; i + 3 < argc; i += 4) {
        fake_leaf1_c = (uint32_t)strtoul(argv[i], NULL, 16);
        fake_leaf7_b = (uint32_t)strtoul(argv[i + 1], NULL, 16);
        fake_leaf7_c = (uint32_t)strtoul(argv[i + 2], NULL, 16);
        fake_leaf7_d = (uint32_t)strtoul(argv[i + 3], NULL, 16);
        printf("%d\\n", (int)ferrule_host_features());
    }
    return 0;
}
"""
FOLDER = Path(cpu_acc.__file__).parent / "src_c"
OSXSAVE, FMA = 1 << 27, 1 << 12
AVX2 = 1 << 5
WIDE = (1 << 16, 1 << 17, 1 << 30, 1 << 31)  # AVX512F, DQ, BW, VL
VNNI = 1 << 11
TILE, TILE_INT8 = 1 << 24, 1 << 25  # AMX
NEITHER, SMALL, LARGE, TILED = 0, 1, 3, 11  # FERRULE_HOST_AVX2 is 1, FERRULE_HOST_AVX512_VNNI 2, FERRULE_HOST_AMX 8


def test_each_bit_is_needed_and_no_other(host_cc: tuple[str, ...], tmp_path: Path) -> None:
    if platform.machine() not in {"x86_64", "AMD64"}:
        lacking("an x86-64 processor", "run the tests on one", rare=True)
    state = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    if "avx512f" not in state:  # the system saves these registers only if the processor has them
        lacking("a processor with AVX-512", "run the tests on one", rare=True)
    full = (OSXSAVE | FMA, AVX2 | sum(WIDE), VNNI, TILE | TILE_INT8)
    rows = {
        full: TILED if "amx_int8" in state else LARGE,
        (*full[:3], TILE): LARGE,
        (*full[:3], TILE_INT8): LARGE,
        (*full[:3], 0): LARGE,
        (full[0] & ~OSXSAVE, *full[1:]): NEITHER,
        (full[0] & ~FMA, *full[1:]): NEITHER,
        (full[0], full[1] & ~AVX2, *full[2:]): NEITHER,
        (*full[:2], 0, full[3]): SMALL,
        **{(full[0], full[1] & ~bit, *full[2:]): SMALL for bit in WIDE},
    }
    (tmp_path / "cpuid.h").write_text(CPUID)
    (tmp_path / "main.c").write_text(MAIN)
    program = tmp_path / "features"
    includes = [f"-I{each}" for each in (tmp_path, FOLDER / "include", root() / "src_c/kernels/include")]
    sources = (str(FOLDER / "features.c"), str(tmp_path / "main.c"))
    subprocess.run([*host_cc, "-std=gnu11", *includes, *sources, "-o", str(program)], check=True)
    words = [f"{leaf:x}" for leaves in rows for leaf in leaves]
    out = ran([str(program), *words], check=True).stdout
    assert [int(line) for line in out.split()] == list(rows.values())
