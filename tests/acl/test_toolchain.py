# SPDX-License-Identifier: Apache-2.0
"""The search for compiler, library and emulator: what is missing is named, with how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest
from children import ran

from ferrule import resources
from ferrule.acl import toolchain
from ferrule.acl.toolchain import find_toolchain, probe_acl
from ferrule.errors import MissingToolError

MULTIARCH = "usr/lib/aarch64-linux-gnu"
SCRIPT = resources.root() / "scripts" / "acl_sysroot.sh"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tool is installed, and the machine is not arm64."""
    for variable in ("FERRULE_ACL_SYSROOT", "ACL_ROOT", "CXX", "QEMU_CPU"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", "")


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def sysroot(folder: Path, *, soname: str = "20.0.0", core: bool = True) -> Path:
    """Return a folder as the script makes it, with empty files."""
    for name in ("usr/include/aarch64-linux-gnu/arm_compute/core/Types.h", "usr/include/hdf5/serial/hdf5.h"):
        (folder / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "root" / name).touch()
    libraries = folder / "root" / MULTIARCH
    libraries.mkdir(parents=True)
    (libraries / f"libarm_compute.so.{soname}").touch()
    (libraries / "libarm_compute.so").symlink_to(f"libarm_compute.so.{soname}")
    if core:
        (libraries / "libarm_compute_core.so").touch()
    program(folder / "cross/usr/bin/aarch64-linux-gnu-g++-12")
    program(folder / "cross/usr/bin/qemu-aarch64")
    return folder


def test_a_folder_of_the_script_has_everything(tmp_path: Path) -> None:
    found = find_toolchain(sysroot(tmp_path))
    assert found.compiler == (str(tmp_path / "cross/usr/bin/aarch64-linux-gnu-g++-12"),)
    emulator = str(tmp_path / "cross/usr/bin/qemu-aarch64")
    assert found.launcher == (emulator, "-cpu", "cortex-a76", "-L", str(tmp_path / "root"))
    assert found.version == "20.08"
    assert found.emulated
    assert not found.opencl
    assert found.link_flags[1:] == ("-larm_compute", "-larm_compute_core", "-lhdf5_serial")


@pytest.mark.parametrize(("soname", "version"), [("43.0.0", "24.11"), ("50.1.0", "of libarm_compute.so.50")])
def test_newer_libraries_are_one_file(tmp_path: Path, soname: str, version: str) -> None:
    found = find_toolchain(sysroot(tmp_path, soname=soname, core=False))
    assert found.version == version
    assert "-Wl,--allow-shlib-undefined" in found.link_flags


def test_without_a_sysroot_the_error_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingToolError, match="no arm64 sysroot") as error:
        find_toolchain()
    assert str(SCRIPT) in (error.value.hint or "")
    assert "FERRULE_ACL_SYSROOT" in (error.value.hint or "")
    monkeypatch.setenv("FERRULE_ACL_SYSROOT", str(tmp_path / "nowhere"))
    with pytest.raises(MissingToolError, match="nowhere is not a folder"):
        find_toolchain()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cross/usr/bin/aarch64-linux-gnu-g++-12", "no C++ compiler for arm64"),
        ("cross/usr/bin/qemu-aarch64", "qemu-aarch64 was not found"),
        (f"root/{MULTIARCH}/libarm_compute.so", "the Arm Compute Library was not found"),
        ("root/usr/include/hdf5/serial/hdf5.h", "the HDF5 library was not found"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, name: str, message: str) -> None:
    (sysroot(tmp_path) / name).unlink()
    with pytest.raises(MissingToolError) as error:
        find_toolchain(tmp_path)
    assert message in str(error.value)
    assert "apt-get install" in (error.value.hint or "")


def test_a_library_of_ones_own_replaces_that_of_the_sysroot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    (own / "arm_compute").mkdir(parents=True)
    (own / "include" / "half").mkdir(parents=True)
    monkeypatch.setenv("ACL_ROOT", str(own))
    with pytest.raises(MissingToolError, match=r"ACL_ROOT is .*own, which has no libarm_compute\.so"):
        find_toolchain(sysroot(tmp_path))
    (own / "build").mkdir()
    (own / "build" / "libarm_compute.so").touch()
    found = find_toolchain(tmp_path)
    assert found.compile_flags[-6:-2] == ("-isystem", str(own), "-isystem", str(own / "include"))
    assert f"-L{own / 'build'}" in found.link_flags
    assert found.launcher[-2:] == ("-E", f"LD_LIBRARY_PATH={own / 'build'}")


def test_an_arm64_machine_needs_neither_sysroot_nor_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    folder = sysroot(tmp_path)
    monkeypatch.setenv("CXX", f"{program(tmp_path / 'bin' / 'mycc')} -march=native")
    found = find_toolchain(folder)
    assert found.compiler == (str(tmp_path / "bin" / "mycc"), "-march=native")
    assert not found.emulated
    assert found.launcher[:2] == (str(folder / "root/lib/ld-linux-aarch64.so.1"), "--library-path")
    monkeypatch.setenv("CXX", "nothing")
    with pytest.raises(MissingToolError, match="CXX is 'nothing', which is not a program"):
        find_toolchain(folder)
    assert [status.name for status in probe_acl()] == ["arm-compute", "arm64-c++"]


def test_doctor_lists_each_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(status.name, status.found) for status in probe_acl()] == [
        ("arm-compute", False),
        ("arm64-c++", False),
        ("qemu-aarch64", False),
    ]
    assert all("acl_sysroot.sh" in status.remedy for status in probe_acl())
    monkeypatch.setenv(toolchain.SYSROOT, str(sysroot(tmp_path)))
    assert [status.version for status in probe_acl()] == ["20.08", "aarch64-linux-gnu-g++-12", "qemu-aarch64"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "usage"), (["a", "b", "c"], "usage"), (["{out}", "sid"], "unknown"), (["{out} x"], "characters")],
)
def test_the_script_refuses_wrong_arguments(tmp_path: Path, arguments: list[str], message: str) -> None:
    words = [word.format(out=tmp_path / "out") for word in arguments]
    done = ran(["/bin/sh", SCRIPT, *words], env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 2
    assert message in done.stderr
