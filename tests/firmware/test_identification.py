# SPDX-License-Identifier: Apache-2.0
"""The identity of a firmware: generated, built in, read back, and verified."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from needs import require_program
from small_networks import dense

from ferrule.architectures import CORTEX_M
from ferrule.codegen import Program
from ferrule.errors import FerruleError
from ferrule.firmware import (
    Group,
    Image,
    Job,
    Section,
    Segment,
    Symbol,
    build_project,
    emit,
    emit_program,
    write_project,
)
from ferrule.firmware.identification import identified, linked_sizes, project_files, read_identities
from ferrule.firmware.sbom import SBOM_NAME
from ferrule.firmware.verification import DIGESTS, State, verify
from ferrule.network import Network

JOB = Job(toolchain="arm-none-eabi-gcc", optimization="Os")


def image(*segments: bytes) -> Image:
    return Image(
        architecture=CORTEX_M,
        path=Path("firmware.elf"),
        entry=0,
        sections=(),
        segments=tuple(Segment(address=n << 20, data=data) for n, data in enumerate(segments)),
        symbols=(),
    )


def identity(model: int, texts: bytes) -> bytes:
    return b"FRID" + struct.pack("<I", 1) + bytes([model]) * 16 + b"\2" * 16 + b"\3" * 16 + texts


@pytest.mark.cc
@pytest.mark.parametrize("platform", ["bare-metal", "cmsis", "zephyr"])
def test_a_project_has_the_digests_of_its_model_plan_and_sources(platform: str, tmp_path: Path) -> None:
    job = replace(JOB, platform=platform, out=tmp_path / "project")
    artifact = emit(dense(), job)
    project = write_project(artifact, job)
    source = (project.folder / "model" / "ferrule_dense_identity.c").read_text()
    (expected,), _ = project_files(Program(artifacts=(artifact,)), job)
    for name in DIGESTS:
        numbers = ", ".join(str(byte) for byte in bytes.fromhex(getattr(expected, name)))
        assert f".{name} = {{{numbers}}}" in source
    assert f'FERRULE_IDENTITY_TEXT("{platform}", "mps2-an386")' in source
    assert SBOM_NAME in project.manifest.files


@pytest.mark.cc
def test_a_firmware_is_verified(tmp_path: Path) -> None:
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    job = replace(JOB, out=tmp_path / "project")
    network = dense()
    built = build_project(write_project(emit(network, job), job))
    whole = verify(built, [network], job)
    assert whole.state is State.EQUAL
    assert whole.models[0].different == ()
    (build,) = read_identities(built)
    assert (build.platform, build.board) == ("bare-metal", "mps2-an386")
    assert build.compiler.startswith("GCC ")
    assert build.flags == "-mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -Os"
    assert build.sizes is not None
    code, constants, weights, data, _, _, _ = build.sizes
    assert code + constants + weights + data == built.flash_bytes
    assert sum(build.sizes) == built.flash_bytes + built.ram_bytes - data
    section = built.section(".ferrule_identity")
    assert section is not None
    assert section.size_bytes == -(-(56 + len("bare-metalmps2-an386" + build.compiler + build.flags) + 4) // 8) * 8

    def different(model: Network, other: Job) -> tuple[str, ...]:
        return verify(built, [model], other, code=False).models[0].different

    assert different(dense(seed=2), job) == (*DIGESTS, "tables")
    assert different(network, replace(job, board="mps2-an500")) == ("sources",)
    assert different(network, replace(job, backends=["SoftNpu", "CpuAcc"]))[:2] == ("plan", "sources")


@pytest.mark.parametrize("name", ["lib/include/ferrule/link.h", "firmware.ld", "model/ferrule_dense.c"])
def test_every_source_counts(name: str) -> None:
    program = emit_program([dense()], JOB)
    (expected,), files = project_files(program, JOB)
    (again,), _ = identified(files, program, "bare-metal", "mps2-an386")
    assert again == expected
    changed = replace(files, generated={**files.generated, name: files.generated[name] + b"\n"})
    (different,), _ = identified(changed, program, "bare-metal", "mps2-an386")
    assert different.sources != expected.sources
    assert replace(different, sources=expected.sources) == expected


def test_identities_are_found_anywhere() -> None:
    first, second = identity(1, b"p\0b\0c\0f\0"), identity(5, b"\0\0\0\0")
    found = read_identities(image(b"abcFRID" + first, b"x" + second + b"FRID" + first))
    assert [(each.model[:2], each.platform, each.flags) for each in found] == [
        ("01", "p", "f"), ("05", "", ""), ("01", "p", "f"),
    ]  # fmt: skip
    assert found[0].sizes is None


@pytest.mark.parametrize("data", [b"", b"FRID\1\0\0\0", identity(1, b""), identity(1, b"a\0b\0c\0" + b"x" * 9000)])
def test_a_firmware_without_a_whole_identity_is_refused(data: bytes) -> None:
    with pytest.raises(FerruleError, match="carries no digests"):
        verify(image(data), [dense()], JOB)


def test_sizes_of_a_firmware_that_states_none() -> None:
    """Weights and workspace are within sections of the kernel's linker script."""
    bare = image()
    groups = {Group.CODE: 50, Group.CONSTANTS: 30, Group.DATA: 7, Group.BSS: 100}
    sections = tuple(
        Section(name=str(group), address=0, load_address=0, size_bytes=size, group=group)
        for group, size in groups.items()
    )
    ends = {"ferrule_weights_start": 0x1000, "ferrule_weights_end": 0x1014}
    symbols = tuple(Symbol(name=name, address=at, size_bytes=0, is_function=False) for name, at in ends.items())
    assert linked_sizes(replace(bare, sections=sections, symbols=symbols), 64) == (50, 10, 20, 7, 36, 64, 0)
    assert linked_sizes(replace(bare, sections=sections, symbols=symbols[:1]), 64) is None
