# SPDX-License-Identifier: Apache-2.0
"""What costs a layer nothing, since other layers need it anyway: scratch below the peak of the workspace, and code."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.backends import KernelCosts, LoweredOp, Price
from ferrule.graph import Graph
from ferrule.memory import lifetimes


@frozen
class Room:
    """What is worth its price over all layers of a network."""

    peak_bytes: int
    """Of the workspace."""
    codes: frozenset[str]
    """The kernels' code, as in `KernelCosts.code`."""


def worth(needs: Mapping[str, int], costs: Mapping[str, Sequence[KernelCosts]], price: Price) -> Room:
    """Return the peak and the code for which the price of bytes, with the instructions of all layers, is the least.

    The peak is exact for kernels without code. Code is then left out, that which saves most first, as long as the
    other kernels of its layers take less than its price.

    Args:
        needs: by layer, the bytes of tensors that are live while it runs.
        costs: by layer, the kernels that can run it; layers that are left out take no scratch of their choice.
        price: what bytes are worth.
    """
    peak, by_code, sizes = _peak(needs, costs, price), {}, {}
    for layer, found in costs.items():
        least: dict[str, float] = {}
        for each in found:
            if needs[layer] + each.scratch_bytes <= peak:
                sizes[each.code] = each.code_bytes
                least[each.code] = min(each.at(price, codes=(each.code,)), least.get(each.code, math.inf))
        by_code[layer] = least
    codes, worthless = set(sizes), ""
    while True:
        codes.discard(worthless)
        chosen = {layer: min(codes & least.keys(), key=least.__getitem__) for layer, least in by_code.items() if least}
        codes = set(chosen.values())
        more: dict[str, float] = defaultdict(float)
        for layer, code in chosen.items():
            others = (cost for other, cost in by_code[layer].items() if other in codes and other != code)
            more[code] += min(others, default=math.inf) - by_code[layer][code]
        worthless = min(sorted(codes), key=lambda code: more[code] - price.flash * sizes[code], default="")
        if not worthless or more[worthless] >= price.flash * sizes[worthless]:
            return Room(peak_bytes=peak, codes=frozenset(codes))


def _peak(needs: Mapping[str, int], costs: Mapping[str, Sequence[KernelCosts]], price: Price) -> int:
    """Return the peak of the least price; of equals, the least.

    Only the peaks that some kernel reaches come into question. For each, a layer takes the cheapest of the kernels that
    fit into it. The peaks are tried in rising order, in which each layer's kernel only gets cheaper, so that each
    kernel of each layer is looked at once.
    """
    kernels = sorted(
        (needs[layer] + each.scratch_bytes, each.at(price, codes=(each.code,)), layer)
        for layer, found in costs.items()
        for each in found
    )
    base = max(needs.values(), default=0)
    cheapest: dict[str, float] = {}
    totals: dict[int, float] = {}
    total, layers = 0.0, sum(1 for found in costs.values() if found)
    for at, cost, layer in kernels:
        if cost < cheapest.get(layer, math.inf):
            total += cost - cheapest.get(layer, 0)
            cheapest[layer] = cost
        if len(cheapest) == layers:
            peak = max(at, base)
            totals[peak] = total + price.ram * peak
    return min(totals, key=lambda peak: (totals[peak], peak), default=base)


def needed_bytes(graph: Graph, order: Sequence[str], lowered: Mapping[str, LoweredOp]) -> dict[str, int]:
    """Return, by layer of an order, the bytes of workspace while it runs, without the scratch of layers to be lowered.

    The output of a layer that is lowered overlaps the inputs that no later layer reads as far as the layer permits, and
    that of another one as far as possible.
    """
    lives = lifetimes(graph, order)
    sizes = {name: graph.info(name).size_bytes for name in lives}
    changes = [0] * (len(order) + 2)
    for name, life in lives.items():
        changes[life.first] += sizes[name]
        changes[life.last + 1] -= sizes[name]
    needs: dict[str, int] = {}
    live, kept = 0, {info.name for info in graph.results}
    for step, layer in enumerate(map(graph.layer, order)):
        live += changes[step]
        ending = {name for name in layer.present_inputs if name in lives and lives[name].last == step} - kept
        saved = min(sum(sizes[name] for name in ending), sum(sizes[name] for name in layer.outputs))
        op, scratch = lowered.get(layer.name), 0
        if op is not None and op.view_of is None:
            common = dict.fromkeys(layer.outputs, 0)
            for each in op.overlaps:
                if each.input in ending:
                    more = common[each.output] + each.common_bytes(sizes[each.output], sizes[each.input])
                    common[each.output] = min(more, sizes[each.output])
            saved, scratch = min(saved, sum(common.values())), op.scratch_bytes
        needs[layer.name] = live - saved + scratch
    return needs
