# SPDX-License-Identifier: Apache-2.0
"""Layers in which one kernel computes the channels with proved constants, and a second one the others."""

from __future__ import annotations

from dataclasses import replace

from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate
from ferrule.backends.firmware import LoweredOp, LoweringContext


def rest_of(context: LoweringContext) -> LoweringContext:
    """Return the context of the second kernel, whose tables have names of their own."""
    return replace(context, prefix=context.symbol("rest"))


def both(first: Candidate, second: Candidate) -> Candidate:
    """Return the candidate that runs two kernels, the first of which also writes the dead channels."""
    return Candidate(
        kernel=f"{first.kernel} and {second.kernel}",
        instructions=first.instructions + second.instructions,
        weight_bytes=first.weight_bytes + second.weight_bytes,
        scratch_bytes=max(first.scratch_bytes, second.scratch_bytes),
        grows=first.grows or second.grows,
        lower=lambda: _joined(first.lower(), second.lower()),
    )


def _joined(first: LoweredOp, second: LoweredOp) -> LoweredOp:
    """Return both calls in order; the output overlaps no input, since the second one reads it again."""
    return replace(
        first,
        kernel=f"{first.kernel} and {second.kernel}",
        statements=(*first.statements, *second.statements),
        declarations=(*first.declarations, *second.declarations),
        blobs=(*first.blobs, *second.blobs),
        scratch_bytes=max(first.scratch_bytes, second.scratch_bytes),
        scratch_alignment=max(first.scratch_alignment, second.scratch_alignment),
        overlaps=(),
        headers=tuple(dict.fromkeys((*first.headers, *second.headers))),
        contributions=(*first.contributions, *second.contributions),
    )
