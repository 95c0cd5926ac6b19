# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib.util
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from children import ran

from ferrule import nativelib
from ferrule.boards import load_board
from ferrule.errors import FerruleError, MissingToolError
from ferrule.firmware import DEFAULT_TOOLCHAIN, TOOLCHAINS, Toolchain, probe_tools, toolchain

BOARD = load_board("mps2-an386")


@pytest.mark.parametrize(
    ("core", "fpu", "dsp", "zig", "gcc"),
    [
        ("cortex-m0plus", "none", False, ("eabi", "cortex_m0plus"), ("cortex-m0plus", "soft", None)),
        ("cortex-m3", "none", False, ("eabi", "cortex_m3"), ("cortex-m3", "soft", None)),
        ("cortex-m4", "none", True, ("eabi", "cortex_m4"), ("cortex-m4", "soft", None)),
        ("cortex-m4", "fpv4-sp-d16", True, ("eabihf", "cortex_m4+vfp4d16sp"), ("cortex-m4", "hard", "fpv4-sp-d16")),
        ("cortex-m7", "fpv5-sp-d16", True, ("eabihf", "cortex_m7+fp_armv8d16sp"), ("cortex-m7", "hard", "fpv5-sp-d16")),
        ("cortex-m7", "fpv5-d16", True, ("eabihf", "cortex_m7+fp_armv8d16"), ("cortex-m7", "hard", "fpv5-d16")),
        (
            "cortex-m33",
            "fpv5-sp-d16",
            True,
            ("eabihf", "cortex_m33+fp_armv8d16sp+dsp"),
            ("cortex-m33", "hard", "fpv5-sp-d16"),
        ),
        (
            "cortex-m33",
            "none",
            False,
            ("eabi", "cortex_m33"),
            ("cortex-m33+nodsp", "soft", None),
        ),
    ],
)
def test_flags_follow_from_the_core(
    core: str, fpu: str, dsp: bool, zig: tuple[str, str], gcc: tuple[str, str, str | None]
) -> None:
    board = replace(BOARD, cpu=replace(BOARD.cpu, type=core, fpu=fpu, dsp=dsp))
    flags = toolchain("zig").target_flags(board)
    assert flags == ("-target", f"thumb-freestanding-{zig[0]}", f"-mcpu={zig[1]}")
    flags = toolchain("arm-none-eabi-gcc").target_flags(board)
    wanted = ["-mthumb", f"-mcpu={gcc[0]}", f"-mfloat-abi={gcc[1]}", *([f"-mfpu={gcc[2]}"] if gcc[2] else [])]
    assert list(flags) == wanted


@pytest.mark.parametrize("each", TOOLCHAINS, ids=lambda each: each.name)
def test_a_boards_own_flags_come_last(each: Toolchain) -> None:
    board = replace(BOARD, flags={each.name: ("-DOWN",), "another": ("-DNOT",)})
    assert each.target_flags(board)[-1] == "-DOWN"
    for flags in (each.compile_flags(board, "O2"), each.link_flags(board, "O2", runtime=True)):
        assert "-DOWN" in flags
        assert "-DNOT" not in flags
        assert "-O2" in flags
    assert "-ffp-contract=off" in each.compile_flags(board, "O3")
    assert "-Wl,--gc-sections" in each.link_flags(board, "O3", runtime=True)


def test_names_are_looked_up() -> None:
    assert DEFAULT_TOOLCHAIN == "zig"
    with pytest.raises(FerruleError, match="there is no toolchain 'arm-gcc'") as caught:
        toolchain("arm-gcc")
    assert caught.value.hint is not None
    assert "arm-none-eabi-gcc" in caught.value.hint


def test_a_missing_toolchain_names_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name, remedy in (("zig", "pip install 'ferrule[run]'"), ("arm-none-eabi-gcc", "apt-get install")):
        assert toolchain(name).find() is None
        with pytest.raises(MissingToolError, match=name) as caught:
            toolchain(name).version()
        assert caught.value.hint is not None
        assert remedy in caught.value.hint


@pytest.mark.cc
@pytest.mark.parametrize(
    ("name", "single", "double", "dsp"),
    [
        ("mps2-an385", False, False, False),
        ("mps2-an386", True, False, True),
        ("mps2-an500", True, True, True),
        ("mps2-an505", True, False, True),
        ("mps3-an547", True, True, True),
        ("stm32f4_discovery", True, False, True),
        ("stm32g0b1", False, False, False),
    ],
)
def test_the_compiler_uses_what_the_core_has(
    name: str, single: bool, double: bool, dsp: bool, any_toolchain: Toolchain, tmp_path: Path
) -> None:
    source = tmp_path / "empty.c"
    source.write_text("", encoding="utf-8")
    flags = any_toolchain.compile_flags(load_board(name), "O3")
    argv = [*any_toolchain.require(), *flags, "-dM", "-E", str(source)]
    text = ran(argv, check=True).stdout
    macros = dict(line.split(maxsplit=2)[1:] for line in text.splitlines() if len(line.split()) > 2)
    widths = int(macros.get("__ARM_FP", "0"), 0)  # ACLE: bit 2 single, bit 3 double precision
    assert (bool(widths & 4), bool(widths & 8)) == (single, double)
    assert ("__ARM_FEATURE_DSP" in macros) is dsp
    assert ("__ARM_PCS_VFP" in macros) is single
    assert macros.get("__ARM_FEATURE_MVE") == ("1" if name == "mps3-an547" else None)  # no vectors of floats


@pytest.mark.cc
def test_vectors_are_of_integers_only(any_toolchain: Toolchain, tmp_path: Path) -> None:
    """Float vectors would flush subnormal numbers to zero, unlike scalar code."""
    board = load_board("mps3-an547")
    source = tmp_path / "empty.c"
    source.write_text("", encoding="utf-8")
    flags = any_toolchain.compile_flags(board, "O3")
    argv = [*any_toolchain.require(), *flags, "-dM", "-E", str(source)]
    text = ran(argv, check=True).stdout
    assert "#define __ARM_FEATURE_MVE 1\n" in text
    assert "#define __ARM_FP 0xe\n" in text or "#define __ARM_FP 14\n" in text


@pytest.mark.cc
def test_says_its_version(any_toolchain: Toolchain) -> None:
    version = any_toolchain.version()
    assert any(character.isdigit() for character in version)
    assert "\n" not in version


def test_probing_finds_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [status.name for status in probe_tools()]
    assert names == [
        "unicorn",
        "ziglang",
        "cffi",
        "threadpoolctl",
        "h5py",
        "pillow",
        "ai-edge-quantizer",
        "opencl",
        "cc",
        "arm-none-eabi-gcc",
        "qemu-system-arm",
        "make",
        "cmake",
        "ninja",
        "dtc",
        "renode",
    ]
    program = tmp_path / "make"
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(program) if name == "make" else None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(nativelib, "find_spec", lambda name: None)
    monkeypatch.delenv("CC", raising=False)
    for status in probe_tools():
        assert status.found is (status.name == "make")
        assert status.path == (str(program) if status.found else None)
        assert status.version is None
        assert status.purpose
        assert status.remedy
