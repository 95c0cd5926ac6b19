# SPDX-License-Identifier: Apache-2.0
"""Tensors that devices share with the core: their places, the rules for the caller, and the cache maintenance."""

from __future__ import annotations

import io
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from children import ran
from rich.console import Console
from wide_networks import between, job

import ferrule
from ferrule.backends.target import Face
from ferrule.boards import load_board
from ferrule.codegen import Artifact, Call
from ferrule.codegen.crossings import Crossing
from ferrule.errors import FerruleError
from ferrule.firmware import emit
from ferrule.graph import LayerType
from ferrule.memory import Access
from ferrule.optimizer import optimize
from ferrule.report.console import print_report
from ferrule.resources import root

LINE = 32
SHARED = ("x", "y", "high", "sum", "again", "flat", "late", "soft", "last", "product")
"""Tensors that a device reads or writes; the core alone uses none but what is copied."""


@pytest.fixture(scope="module")
def plain() -> Artifact:
    """The network on a core without a cache."""
    return emit(between(), job("mps2-an386"))


@pytest.fixture(scope="module")
def cached() -> Artifact:
    """The network on a core with a data cache."""
    return emit(between(), job("mps2-an500"))


def accesses(model: Artifact) -> dict[str, Access]:
    return {request.name: request.access for request in model.storage.requests if request.access is not None}


def test_a_tensor_suits_all_devices_that_use_it(plain: Artifact) -> None:
    found = accesses(plain)
    assert found["high"] == Access(masters=frozenset({"cpu", "npu0", "wide0"}), alignment=32)
    assert found["last"] == Access(masters=frozenset({"cpu", "npu0"}))
    assert found["soft"] == Access(masters=frozenset({"cpu", "npu0"}))
    assert found["flat"] == found["again"]  # a view
    for name, access in found.items():
        assert plain.storage.offset(name) % access.alignment == 0
    assert plain.storage.alignment(plain.storage.regions[0]) == 32
    assert not any("ferrule_cache" in text or "ferrule/port.h" in text for text in plain.files.values())


def test_copies_are_left_to_devices_with_their_own_memory(plain: Artifact) -> None:
    assert [record.layer for record in plain.operators if record.type == "MEM_COPY"] == []
    bounced = emit(between(), job("mps2-an386", bounce=True))
    assert sum(record.type == "MEM_COPY" for record in bounced.operators) == 7
    assert accesses(bounced)["high"] == Access(masters=frozenset({"wide0"}))


def test_behind_a_cache_tensors_have_their_lines_for_themselves(cached: Artifact) -> None:
    for request in cached.storage.requests:
        if request.name in SHARED:
            assert (cached.storage.offset(request.name) % LINE, request.size_bytes % LINE) == (0, 0)
    assert cached.storage.alignment(cached.storage.regions[0]) == LINE
    header = cached.files["ferrule_between.h"]
    assert header.count("the cache lines are the output's") == 3  # the core writes `soft`
    assert "at a multiple of 32 bytes, for a" in header


def test_the_executor_maintains_the_cache(cached: Artifact) -> None:
    body = cached.files["ferrule_between.c"].split("static int32_t run_operators")[1]
    calls = re.findall(
        r"ferrule_cache_(\w+)\((\w+), 175U\)|=\s+(\w+)\(held->handles|(ferrule_lookup_s8)\(|held_(finish)\(.*, (\d), ",
        body,
    )
    assert [" ".join(filter(None, call)) for call in calls] == [
        *("clean x", "clean y", "invalidate high_out", "wide_npu_maximum", "invalidate high_out"),
        *("invalidate sum_out", "woofles_start"),  # high and x are clean
        *("ferrule_lookup_s8", "finish 1", "invalidate sum_out", "ferrule_lookup_s8"),
        *("invalidate again_out", "wide_npu_maximum"),  # the core does not read it
        *("invalidate product", "woofles_start"),
        *("clean rectified_out", "invalidate late", "wide_npu_maximum", "invalidate late"),
        *("finish 7", "invalidate product"),
        *("clean soft", "invalidate last", "woofles_execute", "invalidate last"),
    ]


BESIDE = ("ssram1", "psram")
"""The memories of a device that does not reach the workspace's memory, ssram23."""


def test_tensors_go_where_all_of_their_users_reach() -> None:
    model = emit(between(), job("mps2-an386", regions=((), BESIDE)))
    assert not any(record.type == "MEM_COPY" for record in model.operators)
    regions = {request.name: model.storage.region(request.name).name for request in model.storage.requests}
    assert {name for name, region in regions.items() if region == "sram"} == {"soft", "last", "product"}
    assert regions["flat_sum"] == "shared_psram"  # a view of a tensor that wide0 reads
    source, header = model.files["ferrule_between.c"], model.files["ferrule_between.h"]
    assert "FERRULE_IN_MEMORY(psram) _Alignas(32) uint8_t ferrule_between_default_shared_psram[" in source
    assert "if (memory->shared_psram_bytes < FERRULE_BETWEEN_SHARED_PSRAM_BYTES)" in source
    assert "size_t shared_psram_bytes;" in header
    assert model.workspace_bytes == sum(part.peak_bytes for part in model.storage.plan.regions)
    why = "in memory psram: a device that uses it does not reach the workspace's memory"
    assert row(model.crossings[0]) == ("x", "the core", "wide0", "shared in place", 32, why)


def test_without_a_memory_in_common_the_core_copies() -> None:
    model = emit(between(), job("mps2-an386", regions=(("ssram1", "ssram23"), BESIDE)))
    copies = [record for record in model.operators if record.type == "MEM_COPY"]
    assert [record.layer for record in copies] == [
        "[ x (0) -> sum (1) ]",
        "[ high (0) -> sum (0) ]",
        "[ sum (0) -> again (0) ]",
        "[ late (0) -> last (1) ]",
    ]
    assert {record.kernel for record in copies} == {"copy"}
    assert {call.call for record in copies for call in record.device_calls} <= {Call.FINISH, Call.CLOSE}
    assert model.storage.views == {"flat_sum": "sum"}  # `flat` is a copy, too: its source is in psram
    rows = {(each.tensor, each.reader): each for each in model.crossings if each.copied}
    assert rows["high", "npu0"].why == "npu0 uses the workspace's memory, wide0 does not reach it"
    assert rows["sum", "wide0"].why == "wide0 uses memory psram, npu0 does not reach it"
    assert rows["x", "npu0"].why == (
        "npu0 uses the workspace's memory, another device that uses the tensor does not reach it"
    )


def test_without_a_board_nothing_is_copied() -> None:
    wanted = job("mps2-an386", regions=(("ssram1", "ssram23"), BESIDE))
    options = replace(wanted.optimizer_options(Face.FIRMWARE), memories=())
    divided = optimize(between(), wanted.backends, wanted.backend_source(), options)
    assert not any(layer.type is LayerType.MEM_COPY for layer in divided.graph.layers)


def test_the_masters_of_a_memory_count_like_the_regions_of_a_device() -> None:
    board = load_board("mps2-an386")
    memories = [
        replace(memory, masters=("cpu", "npu0")) if memory.name == "ssram23" else memory for memory in board.memories
    ]
    job_there = replace(job("mps2-an386"), board=replace(board, memories=tuple(memories)))
    storage = emit(between(), job_there).storage
    assert storage.region("high").name == "shared_psram"
    assert storage.region("last").name == "sram"


def test_what_cannot_be_placed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=r"device 'wide0' cannot access memory 'ssram23'.* and no other RAM"):
        emit(between(), job("mps2-an386", regions=((), ("ssram1",))))
    wanted = replace(job("mps2-an386", regions=((), BESIDE)), platform="zephyr", out=tmp_path)
    with pytest.raises(FerruleError, match="parts in memory psram, which devices reach, and a project for Zephyr"):
        ferrule.generate(between(), wanted)


def row(crossing: Crossing) -> tuple[str, str, str, str, int, str]:
    return (
        *(crossing.tensor, crossing.writer, crossing.reader, crossing.became),
        *(crossing.alignment, crossing.why),
    )


def test_each_crossing_is_described(plain: Artifact, cached: Artifact) -> None:
    rows = [row(each) for each in plain.crossings]
    assert rows[:3] == [
        ("x", "the core", "wide0", "shared in place", 32, ""),
        ("y", "the core", "wide0", "shared in place", 32, ""),
        ("high", "wide0", "npu0", "shared in place", 32, ""),
    ]
    assert len(rows) == 14
    lines = "the core caches this memory: the tensor fills lines of 32 B"
    quiet = (("high", "npu0"), ("x", "npu0"), ("sum", "wide0"), ("flat", "npu0"), ("late", "npu0"))
    cleaned = (("x", "wide0"), ("y", "wide0"), ("rectified", "wide0"), ("soft", "npu0"))
    read = ((name, "the core") for name in ("high", "sum", "last", "late", "product"))
    assert {(each.tensor, each.reader): (each.alignment, each.why) for each in cached.crossings} == {
        **dict.fromkeys(quiet, (32, lines)),
        **dict.fromkeys(cleaned, (32, f"{lines}, cleaned before the device reads them")),
        **dict.fromkeys(read, (32, f"{lines}, invalidated before the core reads them")),
    }


def test_pages_list_the_crossings_and_copies_with_their_reason(tmp_path: Path) -> None:
    why = "wide0 uses its own memory of 16384 B only (memory_bytes of its driver)"
    inspection = ferrule.inspect(between(), job("mps2-an386", bounce=True), schedule=True)
    assert inspection.crossings is not None
    part = inspection.crossings[2]
    assert (part.tensor, part.writer, part.reader, part.became) == ("high", "wide0", "the core", "copied")
    assert (part.bytes, part.why) == (175, why)
    assert sum(each.became == "copied" for each in inspection.crossings) == 7
    console = Console(width=200, file=io.StringIO())
    print_report(inspection, console)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert "the tensors that cross between the core and devices" in printed
    assert why in printed
    for platform in ("bare-metal", "cmsis", "zephyr"):
        wanted = replace(job("mps2-an386", bounce=True), platform=platform, out=tmp_path / platform)
        page = (ferrule.generate(between(), wanted).folder / "README.md").read_text()
        assert f"| high | wide0 | the core | 175 | 32 | copied | {why} |" in page


CORE = """
#include <stdio.h>
#define FERRULE_CORE_READ(address) 0u
#define FERRULE_CORE_WRITE(address, value) printf("%lx %lx\\n", (unsigned long)(address), (unsigned long)(value))
#include "ferrule/core/cortex_m.h"
"""
PORT = """
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
static inline void ferrule_port_barrier(void)
{
    puts("dsb");
}
"""
PROGRAM = """
#include "ferrule/port.h"

int main(void)
{
    ferrule_cache_clean((const void *)0x20000045, 28);
    ferrule_cache_invalidate((const void *)0x20000020, 32);
    ferrule_cache_clean((const void *)0x20000020, 0);
    return 0;
}
"""
WRITES = [
    *("dsb", "e000ef68 20000040", "e000ef68 20000060", "dsb"),  # DCCMVAC of each line that holds a byte
    *("dsb", "e000ef70 20000020", "dsb"),  # DCCIMVAC
]


@pytest.mark.cc
@pytest.mark.parametrize(("macro", "writes"), [("-DFERRULE_CACHE_LINE=32u", WRITES), ("-DNONE", [])])
def test_the_defaults_of_the_port(host_cc: tuple[str, ...], tmp_path: Path, macro: str, writes: list[str]) -> None:
    (tmp_path / "own_port.h").write_text(PORT)
    (tmp_path / "own_core.h").write_text(CORE)
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = (
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
        '-DFERRULE_PORT_H="own_port.h"',
        macro,
        '-DFERRULE_CORE_HEADER="own_core.h"',
    )
    includes = (f"-I{tmp_path}", f"-I{root() / 'include'}")
    program = tmp_path / "program"
    subprocess.run([*host_cc, *flags, *includes, str(tmp_path / "main.c"), "-o", str(program)], check=True)
    assert ran([str(program)], check=True).stdout.splitlines() == writes
