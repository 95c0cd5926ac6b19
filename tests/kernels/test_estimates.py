# SPDX-License-Identifier: Apache-2.0
"""The estimates of kernels' instructions, by which goals choose, beside the instructions that were counted."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest
from corpus_shapes import KINDS, corpus
from corpus_table import CORES, TOOLCHAINS, read
from gate import some_of
from needs import require_module
from planned_table import board_of, chosen_kernels, compiled

from ferrule.boards import load_board

FARTHEST = 1.5
"""An estimate as a multiple of the instructions, or the reverse. It is the same for both toolchains, of which one takes
up to 1.6 times the instructions of the other in plain C."""
OTHER_CORES = ("cortex-m0plus", "cortex-m3")
"""Those that the table of the corpus does not have."""
LIGHT = (
    *("avgpool", "maxpool", "add", "sub", "mul", "lstm", "fc_1024_10", "fc_odd_77_33", "bmm_4x32x16_qkT"),
    *("tconv_2x2_s2", "dw_kx1", "c1x1_group8"),
)
"""The shapes that are quick without an FPU, or beside them in one network."""


def far(pairs: Iterable[tuple[str, int, int]]) -> dict[str, float]:
    """Return the multiples that are beyond the limit, of names with an estimate and a count."""
    ratios = {name: estimate / count for name, estimate, count in pairs}
    return {name: ratio for name, ratio in ratios.items() if not 1 / FARTHEST < ratio < FARTHEST}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("core", CORES)
def test_an_estimate_is_near_the_instructions_of_both_toolchains(core: str, kind: str) -> None:
    table, works = read(), chosen_kernels(kind, load_board(CORES[core]), "speed")
    pairs = [
        (f"{name} {toolchain} {work.kernel}", work.instructions, table[toolchain][f"{core} {kind} {name}"])
        for name, work in works.items()
        for toolchain in TOOLCHAINS
        if work.instructions is not None and not name.endswith("_pre")
    ]
    assert len(pairs) > 80
    assert far(pairs) == {}


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("core", "kind"),
    some_of(product(OTHER_CORES, KINDS), [("cortex-m0plus", "int8"), ("cortex-m0plus", "int16"), ("cortex-m3", "f32")]),
)
def test_an_estimate_is_near_the_instructions_without_the_dsp_extension(core: str, kind: str) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    report = compiled(corpus(kind, LIGHT), core, "zig", "speed").run(engine="unicorn")
    works = chosen_kernels(kind, board_of(core), "speed", LIGHT)
    pairs = [
        (f"{layer.name} {works[layer.name].kernel}", estimate, layer.count)
        for layer in report.layers
        if layer.name in works and (estimate := works[layer.name].instructions) is not None
    ]
    assert len(pairs) > 10
    assert far(pairs) == {}


def test_a_fully_connected_layer_of_few_outputs_is_computed_in_octets_on_armv6_m() -> None:
    """That takes fewer instructions, although two octets have eight channels each for ten outputs."""
    (work,) = chosen_kernels("int8", board_of("cortex-m0plus"), "speed", ("fc_1024_10",)).values()
    assert work.kernel == "fully_connected_octet_s8"
    assert work.instructions == pytest.approx(72_300, rel=0.01)


def test_an_estimate_that_is_far_is_found() -> None:
    assert far([("near", 149, 100), ("high", 151, 100), ("low", 100, 151)]).keys() == {"high", "low"}
