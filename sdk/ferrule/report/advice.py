# SPDX-License-Identifier: Apache-2.0
"""What would help a layer that takes much longer than the best kernels known."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.backends.firmware import ConsideredKernel
from ferrule.codegen.artifact import OperatorRecord

COSTLY = 1.5
"""A layer is costly if it takes more than this many times its bound."""
_WORTH_A_WORD = 0.01
"""And if what it takes more is above this part of all instructions."""
_LESS = 0.9
"""A kernel would help if it took at most this part of the instructions."""
_OF_NO_HELP = "the core has no", "it does not round", "the data is not"
"""Reasons of kernels that are for other cores, rules and types."""
_REASONS = 3
"""The most reasons that are listed."""


def advice(record: OperatorRecord, instructions: int, whole: int) -> str:
    """Return what would help an operator that takes so many instructions, or why nothing does; "" if it is not costly.

    `whole` is the instructions of all operators, of which a costly one wastes a part that is worth a word.
    """
    if record.bound is None or instructions <= max(COSTLY * record.bound, record.bound + _WORTH_A_WORD * whole):
        return ""
    above = f"{instructions / record.bound:.1f} times the {record.bound:,} instructions of the best kernels known"
    return f"{record.type} by {record.kernel}, {above}: {_help(record.considered)}"


def _help(considered: Sequence[ConsideredKernel]) -> str:
    known = [(each.kernel, each.costs) for each in considered if each.costs is not None]
    chosen = next((each.costs for each in considered if each.chosen), None)
    if chosen is not None and known:
        kernel, best = min(known, key=lambda each: each[1].instructions)
        if best.instructions <= _LESS * chosen.instructions:
            saved = 1 - best.instructions / chosen.instructions
            more = {
                "B of weights": best.weight_bytes - chosen.weight_bytes,
                "B of scratch": best.scratch_bytes - chosen.scratch_bytes,
            }
            price = " and ".join(f"{size:,} {what}" for what, size in more.items() if size > 0)
            return f"{kernel} would save {saved:.0%} for {price or 'its code'}, with the goal speed or a lower price"
    refused = [each for each in considered if each.costs is None and not each.reason.startswith(_OF_NO_HELP)]
    first = {each.reason: f"{each.kernel}: {each.reason}" for each in reversed(refused)}
    reasons = list(dict.fromkeys(first[each.reason] for each in refused))
    return "; ".join(reasons[:_REASONS]) or "there is no better kernel for it"
