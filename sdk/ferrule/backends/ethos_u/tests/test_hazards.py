# SPDX-License-Identifier: Apache-2.0
"""Waits that a stream lacks: streams by hand, and streams of Vela with each wait taken away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from ethos_u_models import compiled, compiled_cases
from ethos_u_streams import SCRATCH, U55, copy, maximum, settings, short, stop

from ferrule.backends.ethos_u.commands import Kind, Long, Short
from ferrule.backends.ethos_u.compiled import CompiledStream
from ferrule.backends.ethos_u.configuration import Configuration, configuration
from ferrule.backends.ethos_u.hazards import Hazard, HazardTracker
from ferrule.backends.ethos_u.npu import ArrayMemory, Npu, prepared
from ferrule.backends.ethos_u.stream import Operation, operations, parse_payload


def hazards(words: Sequence[int], compiled_for: Configuration = U55) -> list[Hazard]:
    npu = Npu(compiled_for, ArrayMemory({SCRATCH: np.zeros(1024, np.uint8)}), check_hazards=True)
    return [each for step in npu.steps(np.array(words, np.uint32)) for each in step.hazards]


def started(source: int, target: int, size_bytes: int) -> list[int]:
    return copy(source, target, size_bytes)[:-1]


def test_a_kernel_that_reads_what_a_copy_still_writes() -> None:
    (found,) = hazards([*started(0, 64, 32), *maximum(64, 0, 128, 16), *stop()])
    assert found.missing == "DMA_WAIT 0"
    assert (found.operation.name, found.earlier.kind) == ("ELEMENTWISE MAX", Kind.DMA_START)
    assert (found.range.start, found.range.end) == (64, 80)
    assert "may still run: DMA_WAIT 0 is missing" in str(found)
    assert hazards([*copy(0, 64, 32), *maximum(64, 0, 128, 16), *stop()]) == []
    assert hazards([*started(0, 256, 32), *maximum(64, 0, 128, 16), *stop()]) == []


@pytest.mark.parametrize("target", [64, 128])
def test_a_copy_over_what_a_kernel_still_reads_or_writes(target: int) -> None:
    kernel = maximum(64, 0, 128, 16)
    (found,) = hazards([*kernel, *started(512, target, 16), *stop()])
    assert found.missing == "KERNEL_WAIT 0"
    assert hazards([*kernel, *short(Kind.KERNEL_WAIT, 0), *started(512, target, 16), *stop()]) == []


def test_a_wait_names_how_many_younger_kernels_may_go_on() -> None:
    kernels = [*maximum(64, 0, 128, 16), *maximum(256, 272, 288, 16)]
    (found,) = hazards([*kernels, *started(512, 128, 16), *stop()])
    assert found.missing == "KERNEL_WAIT 1"
    assert hazards([*kernels, *short(Kind.KERNEL_WAIT, 1), *started(512, 128, 16), *stop()]) == []


def test_the_third_kernel_waits_for_the_first() -> None:
    kernels = [*maximum(64, 0, 128, 16), *maximum(256, 272, 288, 16), *maximum(304, 320, 336, 16)]
    assert hazards([*kernels, *started(512, 128, 16), *stop()]) == []


def test_u65_has_two_copies_in_its_queue() -> None:
    words = [*started(0, 64, 16), *started(512, 528, 16), *maximum(64, 0, 128, 16), *stop()]
    assert [each.missing for each in hazards(words, configuration("ethos-u65-256"))] == ["DMA_WAIT 1"]
    assert hazards(words) == []


def test_a_kernel_that_follows_too_closely() -> None:
    """The second reads at once what the first writes last."""

    def following(dependency: int) -> list[int]:
        block = {Short.OFM_BLK_HEIGHT_M1: 0, Short.OFM_BLK_WIDTH_M1: 15, Short.OFM_BLK_DEPTH_M1: 0}
        second = [*settings({Short.BLOCKDEP: dependency}), *maximum(128, 0, 192, 16)]
        return [*settings(block), *maximum(64, 0, 128, 16), *second, *stop()]

    assert hazards(following(0)) == []
    (found,) = hazards(following(2))
    assert found.missing.startswith("a BLOCKDEP of 0 (it is 2)")


def test_a_table_that_a_kernel_without_table_may_overwrite() -> None:
    """In 16 KiB, accumulators reach to the end of the internal memory."""
    for name, expected in (("ethos-u55-64", ["KERNEL_WAIT 0"]), ("ethos-u55-128", [])):
        compiled_for = configuration(name)
        table = {
            Short.DMA0_SRC_REGION: SCRATCH,
            Short.DMA0_DST_REGION: 0x100,
            Long.DMA0_SRC: 512,
            Long.DMA0_DST: compiled_for.shram_bytes - 2048,
            Long.DMA0_LEN: 256,
        }
        words = [*maximum(64, 0, 128, 16), *settings(table), *short(Kind.DMA_START), *stop()]
        assert [each.missing for each in hazards(words, compiled_for)] == expected


@pytest.fixture(scope="module")
def kws() -> dict[str, CompiledStream]:
    return {name: compiled(["kws"], configuration(name))[0] for name in ("ethos-u55-64", "ethos-u65-512")}


@pytest.mark.parametrize("name", ["ethos-u55-64", "ethos-u65-512"])
def test_streams_of_vela_lack_no_wait_and_need_each(name: str, kws: dict[str, CompiledStream]) -> None:
    words = parse_payload(kws[name].payload).words
    steps = list(operations(words))
    assert tracked(steps, kws[name].configuration) == []
    waits = [each for each in steps if each.kind in {Kind.DMA_WAIT, Kind.KERNEL_WAIT}]
    assert len(waits) > 15
    for wait in waits:
        left = [each for each in steps if each is not wait]
        assert tracked(left, kws[name].configuration), f"word {wait.word_offset}"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["softmax", "softmax16", "mirror_pad", "chain", "conv"])
@pytest.mark.parametrize("name", ["ethos-u55-64", "ethos-u55-128", "ethos-u65-512"])
def test_streams_of_one_operator_lack_no_wait(kind: str, name: str) -> None:
    compiled_for = configuration(name)
    for stream in compiled_cases(kind, 40, compiled_for):
        steps = list(operations(parse_payload(stream.payload).words))
        assert tracked(steps, compiled_for) == []
        for wait in (each for each in steps if each.kind in {Kind.DMA_WAIT, Kind.KERNEL_WAIT}):
            assert tracked([each for each in steps if each is not wait], compiled_for), f"word {wait.word_offset}"


def tracked(steps: Sequence[Operation], compiled_for: Configuration) -> list[Hazard]:
    tracker = HazardTracker(compiled_for)
    return [found for step in steps for found in tracker.issue(step, prepared(step, compiled_for))]
