# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D of int8 with any window, as `ferrule/kernels/depthwise_window.h` computes it.

The window slides along lines whose words hold one pixel, or two for the DSP extension. Weights are multiplied in
records of three or two words for four sums at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, rule_sources
from ferrule.backends.cpu_acc.lowering.kernels.choice import (
    Candidate,
    Feature,
    both,
    weighted_row,
)
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_scale,
    has_full_range,
    int8_channels,
    is_plain,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.cpu_acc.lowering.kernels.proved_channels import proved_scales
from ferrule.backends.cpu_acc.lowering.kernels.scalar import plain_scales
from ferrule.backends.cpu_acc.lowering.kernels.sliding import (
    MOST_CHANNELS,
    TOO_MANY_CHANNELS,
    by_input,
    place_fields,
    slidings,
)
from ferrule.backends.cpu_acc.lowering.kernels.window_words import Words
from ferrule.dom import Identifier
from ferrule.graph import Array, Rounding

_SUMS = 4
"""Sums that are computed together."""
_MOST_ROWS = 8
"""The most rows of a line, as the header has them."""
_MOST_WORDS = 1 << 14
"""The places of words in a record have 16 bits."""
_MOST_TAPS = (1 << 15) - 1
"""So have the indices of weights in a plan."""
_ENOUGH_LINES = 3
"""Lines in scratch beside those under the window: more of them are moved less often."""


@frozen
class _Costs:
    """Instructions of a core."""

    group: int
    """Channels that are widened together."""
    word: float
    """Per word that is widened, of all channels of the group."""
    three: int
    """Per record of three words for four sums."""
    two: int
    block: int
    """Per four sums, beside the records."""
    channel: int
    """Per line and channel, for each pass."""
    line: int
    """Per line of a group."""


_PAIRS = _Costs(group=4, word=15, three=18, two=13, block=8, channel=60, line=110)
_WORDS = _Costs(group=1, word=3, three=18, two=13, block=8, channel=75, line=110)
_SHORT_WORDS = _Costs(group=1, word=4.5, three=37, two=26, block=26, channel=100, line=150)


def _instructions(words: Words, costs: _Costs, live: int, store: float, capacity: int) -> int:
    """Return an estimate for the layer."""
    way = words.way
    lines, steps = way.lines.outputs, way.steps.outputs
    needed = (lines - 1) * way.lines.part_stride + way.lines.taps
    inside = min(-(-way.lines.input_extent // way.lines.dilation), needed)
    outside = min(needed - inside, way.lines.taps)
    sums = 0.0
    for index in range(words.passes):
        count = max((steps - index + words.passes - 1) // words.passes, 0)
        records = sum(costs.three if len(each.taps) == 3 else costs.two for each in words.records(index))
        sums += -(-count // _SUMS) * (costs.block + way.lines.taps * records) + costs.channel + store * count
    moved = max(way.lines.taps - way.lines.part_stride, 0) * costs.group * 2.2 / max(capacity - way.lines.taps + 1, 1)
    moves = 0 if capacity >= needed else lines * moved * words.line_words
    group = lines * costs.line + inside * (words.line_words * costs.word + 60 * len(words.starts)) + moves
    group += outside * words.line_words * costs.group * 1.3
    channel = lines * sums + words.stream_words * 11
    parts = way.layer.image.shape[0] * way.lines.parts * way.steps.parts
    fill = capacity * words.line_words * costs.group * 1.5 + 200
    dead = (way.layer.output.shape[3] - live) * 2 * way.lines.output_extent * way.steps.output_extent
    return int(parts * (fill + -(-live // costs.group) * group + live * channel) + dead)


def _best_words(
    layer: Convolution, pixels: int, costs: _Costs, live: int, store: float, *, small: bool
) -> tuple[Words, int, int] | str:
    """Return the better way to slide, its lines in scratch, and its instructions; or why there is none.

    That is the one with fewer instructions, or with less scratch if `small`.
    """
    found = []
    for way in slidings(layer):
        words = Words(way=way, pixels=pixels)
        needed = (way.lines.outputs - 1) * way.lines.part_stride + way.lines.taps
        more = 0 if small else max(_ENOUGH_LINES, 2 * way.lines.taps - 2)
        capacity = way.lines.taps + more
        if needed <= capacity + (not small):
            capacity = needed
        if len(words.starts) <= _MOST_ROWS and way.lines.taps * words.line_words <= _MOST_WORDS:
            found.append((words, capacity, _instructions(words, costs, live, store, capacity)))
    if small:
        return min(found, key=lambda each: _scratch_words(each[0], costs, each[1]), default=_TOO_WIDE)
    return min(found, key=lambda each: each[2], default=_TOO_WIDE)


def _scratch_words(words: Words, costs: _Costs, capacity: int) -> int:
    """Return the words of scratch: lines and streams of a group, and whole blocks of sums."""
    sums = -(-words.way.steps.outputs // (words.passes * _SUMS)) * _SUMS
    return costs.group * (capacity * words.line_words + words.stream_words) + sums


_TOO_WIDE = "the window or the stride is too large"


@frozen
class _Store:
    """How sums are stored."""

    function: str
    sources: tuple[str, ...]
    cost: float
    """Instructions per sum."""
    scales: Array
    words: int
    """Of the scales, per channel."""


def _candidate(
    channels: Channels, pixels: int, costs: _Costs, store: _Store, *, small: bool = False
) -> Candidate | str:
    layer, live = channels.layer, len(channels.places)
    found = _best_words(layer, pixels, costs, live, store.cost, small=small)
    if isinstance(found, str):
        return found
    words, capacity, instructions = found
    way = words.way
    unit, by = "pairs" if pixels == 2 else "words", "_by2" if words.hop == 2 else ""
    taps = way.lines.taps * way.steps.taps
    plan = words.plan()

    return Candidate(
        kernel=f"depthwise_conv2d_{unit}_s8",
        code="depthwise_conv2d_window_s8",
        instructions=instructions,
        weight_bytes=live * (taps + 1 + 4 * store.words + 2) + plan.nbytes,
        scratch_bytes=4 * _scratch_words(words, costs, capacity),
        overlaps=way.overlaps,
        call=lambda: KernelCall(
            "depthwise_conv2d_window_s8",
            "ferrule/kernels/depthwise_window.h",
            {
                "batches": layer.image.shape[0],
                "input_c": layer.image.shape[3],
                "output_c": layer.output.shape[3],
                "lines": way.lines.fields,
                "steps": way.steps.fields,
                "input_zero_point": layer.image.zero_point,
                "window_lines": way.lines.taps,
                "taps": taps,
                "group": costs.group,
                "passes": words.passes,
                "spread": words.spread,
                "rows": len(words.starts),
                "row_words": words.row_words,
                "capacity": capacity,
                "stream_words": words.stream_words,
                "starts": np.array(words.starts, np.int16),
                "plan": plan,
                **place_fields(channels),
                "weights": filled(way.taps(channels).reshape(-1, taps), 1, taps + 1).reshape(-1)
                if live
                else np.zeros(1, np.int8),
                "scale_words": store.words,
                "scales": store.scales,
                "output": layer.output_fields,
                "expand": Identifier(f"ferrule_expand_{unit}"),
                "widen": Identifier(f"ferrule_widen_{unit}"),
                "multiply": Identifier(f"ferrule_multiply_{unit}{by}"),
                "store": Identifier(f"ferrule_{store.function}"),
            },
            title=f"depthwise_conv2d_{unit}_s8",
            sources=("depthwise_parts", f"window_{unit}", *((f"window_{unit}{by}",) if by else ()), *store.sources),
        ),
    )


def _exact(channels: Channels, *, dsp: bool) -> _Store | str:
    """Return how the sums are stored by the arithmetic of the layer's rule."""
    if not can_scale(channels):
        return TOO_LARGE
    layer, rule = channels.layer, channels.rounding
    function, cost = "store_sums", 16.0 if dsp else 18.0
    sources: tuple[str, ...] = ("store_sums",)
    if rule is not Rounding.TFLM:
        function, cost, sources = f"store_sums_{rule.value}", 24.0, ("store_sums_once", *rule_sources(rule))
    elif is_plain(layer):
        function, cost = "store_sums_plain", 7.0 if dsp else 8.0
    elif has_full_range(layer):
        function, cost = "store_sums_whole", 8.0 if dsp else 9.0
    return _Store(function=function, sources=sources, cost=cost, scales=plain_scales(channels), words=5)


def _pairs(layer: Convolution, *, small: bool) -> Candidate | str:
    """Return the kernel for pairs; channels without proved constants are a second call."""
    live = by_input(int8_channels(layer).live)
    found = proved_scales(live)
    exact = _exact(live, dsp=True)
    if found is None or not found[1].any():
        return exact if isinstance(exact, str) else _candidate(live, 2, _PAIRS, exact, small=small)
    scales, proved = found
    first = live.chosen(proved)
    store = _Store(
        function="store_sums_proved",
        sources=("store_sums_proved",),
        cost=4.5,
        scales=filled(scales[proved].reshape(-1), 1),
        words=2,
    )
    candidate = _candidate(first, 2, _PAIRS, store, small=small)
    return candidate if isinstance(candidate, str) else with_others(candidate, live.chosen(~proved), small=small)


def with_others(first: Candidate, others: Channels, *, small: bool = False) -> Candidate | str:
    """Return a kernel with that of other channels of the layer, which rounds as the layer's rule does."""
    if not len(others.places):
        return first
    others = replace(others, dead=np.zeros_like(others.dead))  # the first kernel writes them
    exact = _exact(others, dsp=True)
    second = exact if isinstance(exact, str) else _candidate(others, 2, _PAIRS, exact, small=small)
    return second if isinstance(second, str) else both(first, second)


def _words(layer: Convolution, *, small: bool) -> Candidate | str:
    core = layer.context.target.core
    short = core is not None and core.baseline
    live = by_input(int8_channels(layer).live)
    store = _exact(live, dsp=False)
    if isinstance(store, str):
        return store
    if short:
        store = replace(store, cost=store.cost + (23 if store.sources == ("store_sums",) else 60))
    return _candidate(live, 1, _SHORT_WORDS if short else _WORDS, store, small=small)


def _of_both_sizes(
    candidate: Callable[..., Candidate | str],
) -> Callable[[Convolution], Sequence[Candidate] | str]:
    """Return the candidates with lines in scratch that are moved seldom, and with the least scratch."""

    def found(layer: Convolution) -> Sequence[Candidate] | str:
        if layer.output.shape[3] > MOST_CHANNELS:
            return TOO_MANY_CHANNELS
        if layer.window.height * layer.window.width > _MOST_TAPS:
            return _TOO_WIDE
        large, little = (candidate(layer, small=small) for small in (False, True))
        return large if isinstance(large, str) else little if isinstance(little, str) else (large, little)

    return found


PAIRS_ROW = weighted_row("depthwise_conv2d_pairs_s8", _of_both_sizes(_pairs), Feature.DSP)
"""The kernel for the DSP extension."""
WORDS_ROW = weighted_row("depthwise_conv2d_words_s8", _of_both_sizes(_words))
"""The same for cores without the DSP extension."""
