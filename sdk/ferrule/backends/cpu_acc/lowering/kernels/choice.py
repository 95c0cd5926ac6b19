# SPDX-License-Identifier: Apache-2.0
"""The choice among the kernels that can run a layer: by the core's features, the costs, and the price of bytes.

Each operator with several kernels has a tuple of rows, the preferred one first among equals. A row states which core
features its kernel needs and returns a candidate with its costs for one layer, or several that differ in their scratch,
or the reason why the kernel cannot run it. `choose` picks one candidate and states the best of each row in
`LoweredOp.considered`, for `ferrule inspect --kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, together
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.backends.firmware import ConsideredKernel, KernelCosts, LoweredOp, LoweringContext
from ferrule.backends.target import CoreFeatures
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Rounding
from ferrule.memory.request import Overlap
from ferrule.operators.weighted.products import WEIGHTED_RULES
from ferrule.timing.planned import KernelWork

_CODE_BYTES = 2000
"""The code of a kernel, on average of those for layers with weights."""
_CLOSE = 1.02
"""Planned cycles that differ by less than this are equal: layers of one kernel differ by more from their table."""
SLOWER_WITHOUT_DSP = "the kernel for cores without the DSP extension takes fewer instructions"
"""A kernel's reason not to run a layer on a core without the DSP extension."""


class Feature(StrEnum):
    """A feature of the core that a kernel needs."""

    LONG_MULTIPLY = "long multiply"
    """SMULL, from Armv7-M on."""
    DSP = "DSP extension"
    MVE = "vector extension (MVE)"


@frozen
class Candidate:
    """A kernel that can run a layer, with its costs."""

    kernel: str
    """The kernel's name, as in `LoweredOp.kernel`."""
    code: str = ""
    """A name for most of the kernel's code, if other kernels share it; the default is the kernel's."""
    instructions: int
    """Estimate for one inference, within about a tenth."""
    weight_bytes: int
    """Flash of the weights and of the tables that grow with the layer."""
    cycles: int | None = None
    """As in `KernelCosts.cycles`; the table's rows leave it out."""
    scratch_bytes: int = 0
    """As in `LoweredOp.scratch_bytes`; above the layer's spare bytes it probably raises the peak of the workspace."""
    overlaps: Callable[[], tuple[Overlap, ...]] = tuple
    """Returns `LoweredOp.overlaps`, without lowering the layer; by default there are none."""
    call: Callable[[], KernelCall]
    """Returns the call of the kernel; `lowered` adds `scratch_bytes` and `overlaps`."""
    rest: Candidate | None = None
    """The kernel of the other channels, if two kernels divide them."""

    @property
    def costs(self) -> KernelCosts:
        """What the kernel takes."""
        return KernelCosts(
            instructions=self.instructions,
            weight_bytes=self.weight_bytes,
            scratch_bytes=self.scratch_bytes,
            code=self.code or self.kernel,
            code_bytes=_CODE_BYTES,
            cycles=self.cycles,
        )

    def lowered(self, context: LoweringContext) -> LoweredOp:
        """Return the layer as calls of the kernels, with how far the output may overlap the inputs."""
        call = self.call()
        call = replace(call, scratch_bytes=call.scratch_bytes or self.scratch_bytes, overlaps=self.overlaps())
        op = call.lowered(context)
        if self.rest is None:
            return op
        # the tables of the second kernel have other names
        ops = op, self.rest.lowered(replace(context, prefix=context.symbol("rest")))
        names = " and ".join(each.kernel for each in ops)
        return replace(together(ops), kernel=names, statements=tuple(each for op in ops for each in op.statements))


Found: TypeAlias = Candidate | Sequence[Candidate] | str
"""What became of a row for one layer."""


@frozen
class Row:
    """A kernel in the table of an operator."""

    kernel: str
    needs: frozenset[Feature] = frozenset()
    rules: frozenset[Rounding] = frozenset({Rounding.TFLM})
    """The rules by which it rounds."""
    candidate: Callable[[LoweringContext], Found]
    """Returns the kernel, or the same kernel with less and more scratch; the reason as a string if it cannot run the
    layer.

    It is called only if the core has `needs` and the layer's rule is among `rules`.
    """


def weighted_row(
    kernel: str,
    candidate: Callable[[Convolution], Found],
    *needs: Feature,
    rules: frozenset[Rounding] = WEIGHTED_RULES,
    dtype: DataType = DataType.INT8,
) -> Row:
    """Return the row of a kernel for layers with weights and data of a type."""

    def found(context: LoweringContext) -> Found:
        layer = Convolution.of(context)
        return candidate(layer) if layer.image.dtype is dtype else f"the data is not {dtype}"

    return Row(kernel=kernel, needs=frozenset(needs), rules=rules, candidate=found)


def both(first: Candidate, second: Candidate) -> Candidate:
    """Return the candidate that runs two kernels on different channels; the first one also writes the dead channels.

    Its output overlaps no input, since the second kernel reads the input again.
    """
    return Candidate(
        kernel=f"{first.kernel} and {second.kernel}",
        instructions=first.instructions + second.instructions,
        weight_bytes=first.weight_bytes + second.weight_bytes,
        scratch_bytes=max(first.scratch_bytes, second.scratch_bytes),
        call=lambda: replace(first.call(), scratch_bytes=first.scratch_bytes),
        rest=second,
    )


@frozen
class Considered:
    """What became of one row for one layer."""

    candidate: Candidate | None
    stated: ConsideredKernel


def core_features(core: CoreFeatures | None) -> frozenset[Feature]:
    """Return the features of a core; without a core, those that the C fallbacks of all kernels provide: none of them.

    A core without a description is taken for one with long multiplication, as the host has it.
    """
    if core is None:
        return frozenset({Feature.LONG_MULTIPLY})
    given = {Feature.LONG_MULTIPLY: not core.baseline, Feature.DSP: core.dsp, Feature.MVE: core.mve}
    return frozenset(feature for feature, there in given.items() if there)


def has_dsp(core: CoreFeatures | None) -> bool:
    """Return whether the costs of a core with the DSP extension hold, as they do for a core without a description."""
    return core is None or core.dsp


def choose(context: LoweringContext, rows: Sequence[Row]) -> LoweredOp:
    """Return the layer lowered to the kernel that the goal prefers.

    Raises:
        UnsupportedError: no kernel can run the layer; the message has the reason of each.
    """
    considered = explain(context, rows)
    return replace(_chosen(context, considered).lowered(context), considered=tuple(each.stated for each in considered))


def overlaps_of_choice(context: LoweringContext, rows: Sequence[Row]) -> tuple[Overlap, ...]:
    """Return the overlaps of the layer that `choose` returns, which raises the same; the layer is not lowered."""
    return _chosen(context, explain(context, rows)).overlaps()


def _chosen(context: LoweringContext, considered: Sequence[Considered]) -> Candidate:
    for each in considered:
        if each.stated.chosen and each.candidate is not None:
            return each.candidate
    reasons = "; ".join(f"{each.stated.kernel}: {each.stated.reason}" for each in considered)
    raise UnsupportedError(f"layer '{context.layer.name}': no kernel can run it: {reasons}")


def explain(context: LoweringContext, rows: Sequence[Row]) -> tuple[Considered, ...]:
    """Return what became of each row, in the order of the rows."""
    found = [_cheapest(each, context) for each in _found(context, rows)]
    best = _cheapest([each for each in found if isinstance(each, Candidate)], context)
    return tuple(_considered(row, each, best, context) for row, each in zip(rows, found, strict=True))


def costs(context: LoweringContext, rows: Sequence[Row]) -> tuple[KernelCosts, ...]:
    """Return the costs of all kernels that can run a layer; `choose` finds them again in the context."""
    return tuple(each.costs for found in _found(context, rows) if not isinstance(found, str) for each in found)


def _found(context: LoweringContext, rows: Sequence[Row]) -> Sequence[Sequence[Candidate] | str]:
    """Return the candidates of each row, or the reason why there are none."""
    key = tuple(row.kernel for row in rows)
    if key not in context.memo:
        context.memo[key] = [_of_row(context, row) for row in rows]
    found: Sequence[Sequence[Candidate] | str] = context.memo[key]
    return found


def _of_row(context: LoweringContext, row: Row) -> Sequence[Candidate] | str:
    missing, rule = sorted(row.needs - core_features(context.target.core)), context.layer.rounding
    if missing:
        return f"the core has no {' and no '.join(missing)}"
    if rule not in row.rules:
        return f"it does not round by {rule.phrase}"
    found = row.candidate(context)
    if isinstance(found, str):
        return found
    return [_clocked(each, context) for each in ((found,) if isinstance(found, Candidate) else found)]


def _clocked(candidate: Candidate, context: LoweringContext) -> Candidate:
    """Return a candidate with its planned cycles if the firmware minimises time."""
    pace = context.target.clocked
    if pace is None:
        return candidate
    work = KernelWork(kernel=candidate.kernel, instructions=candidate.instructions, weight_bytes=candidate.weight_bytes)
    return replace(candidate, cycles=pace.cycles(work))


def _cheapest(candidates: Sequence[Candidate] | str, context: LoweringContext) -> Candidate | str:
    """Return the candidate of the least price, the first among equals; without candidates, the reason that is given."""
    if isinstance(candidates, str) or not candidates:
        return str(candidates)
    price, spare, codes = context.target.price, context.spare_bytes, context.codes
    costs = [each.costs.at(price, spare, codes) for each in candidates]
    if context.target.clocked is not None:  # what the table cannot tell apart, instructions do
        least = _CLOSE * min(costs)
        costs = [max(cost, least) for cost in costs]
    ordered = [
        (cost, each.instructions, each.weight_bytes, each.scratch_bytes)
        for cost, each in zip(costs, candidates, strict=True)
    ]
    return candidates[ordered.index(min(ordered))]


def _considered(row: Row, found: Candidate | str, best: Candidate | str, context: LoweringContext) -> Considered:
    if isinstance(found, str) or isinstance(best, str):
        return Considered(candidate=None, stated=ConsideredKernel(kernel=row.kernel, reason=str(found)))
    worse = {
        "more cycles": (found.cycles or 0) > (best.cycles or 0),
        "more instructions": best.cycles is None and found.instructions > best.instructions,
        "more weights": found.weight_bytes > best.weight_bytes,
        "more scratch": found.scratch_bytes > best.scratch_bytes,
    }
    reason = f"{', '.join(cost for cost, more in worse.items() if more) or 'no better'} than {best.kernel}"
    stated = ConsideredKernel(
        kernel=found.kernel,
        reason=f"best for {context.target.aim}" if found is best else reason,
        chosen=found is best,
        costs=found.costs,
    )
    return Considered(candidate=found, stated=stated)
