# SPDX-License-Identifier: Apache-2.0
"""Compares the tensors of a generated class with the numpy reference, layer by layer, each element with its bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.codegen.acl import ArtifactRecord, TensorRecord, accuracy
from ferrule.graph import Array, DataType, Graph, Layer
from ferrule.network import Network
from ferrule.network.bounds import outside
from ferrule.network.execution import by_name
from ferrule.operators import interpreter
from ferrule.operators.arithmetic import running_error
from ferrule.operators.arithmetic.error_bound import distance
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.operators.operator import Arithmetic
from ferrule.report.document import Verdict
from ferrule.report.evidence import evidence_of
from ferrule.report.verdicts import worst

_HALF = Arithmetic(unit=2.0**-11, smallest=float(np.finfo(np.float16).smallest_subnormal))


@frozen
class TensorComparison:
    """The comparison of one tensor with the reference."""

    layer: str
    type: str
    """The type of the layer."""
    tensor: str
    dtype: str
    elements: int
    difference: float | None
    """The largest |difference| of an element; of integers, in steps. None if it is not finite."""
    share: float | None
    """The largest |difference| of an element as a part of this element's bound; None without any bound."""
    outside: int
    """The elements that are further away than their bound; an element without a bound must be equal."""
    verdict: Verdict


def bounded_reference(
    network: Network, record: ArtifactRecord, inputs: Sequence[Array] | Mapping[str, Array], *, stepwise: bool = True
) -> dict[str, Bounded]:
    """Return all tensors that the layers of a network write, with how far those of a class may be away, by name.

    The inputs of a layer are the reference's own, in the class's type, or with `stepwise` off, as far away as what the
    layers before it have left.
    """
    tensors: dict[str, Bounded] = {}
    stored = _in_half if record.float16 else Bounded

    def run(graph: Graph, layer: Layer, given: Sequence[Bounded | None]) -> list[Bounded]:
        about = accuracy(graph, layer)
        arithmetic = replace(_HALF if record.float16 else Arithmetic(), spare=about.spare)
        made = running_error.run_layer(graph, layer, given, arithmetic)
        wider = [_widened(each, about.absolute, about.steps) for each in made]
        tensors.update(zip(layer.outputs, wider, strict=True))
        return [stored(each.values) for each in wider] if stepwise else wider

    arrays = by_name("the network", network.inputs, inputs)
    with np.errstate(all="ignore"):
        interpreter.walk(network, {name: stored(array) for name, array in arrays.items()}, stored, run)
    return tensors


def compare_tensors(
    network: Network, record: ArtifactRecord, found: Mapping[str, Array], expected: Mapping[str, Bounded]
) -> tuple[TensorComparison, ...]:
    """Return the comparison of each tensor, in the order in which the layers write them."""
    types = {output: str(layer.type) for layer in network.layers for output in layer.outputs}
    return tuple(
        _compared(tensor, types[tensor.name], found[tensor.name], expected[tensor.name])
        for tensor in record.tensors
        if tensor.layer is not None
    )


def overall(comparisons: Sequence[TensorComparison]) -> Verdict:
    """Return the worst verdict of all tensors, as `worst` does."""
    return worst(each.verdict for each in comparisons)


def _in_half(array: Array) -> Bounded:
    """Return what a class that computes in float16 has of an array of float32."""
    return Bounded(array.astype(np.float16).astype(array.dtype) if array.dtype == np.float32 else array)


def _widened(made: Bounded, absolute: float, steps: int) -> Bounded:
    """Return a tensor with what the library's function may be off beside rounding."""
    kind = made.values.dtype
    more = absolute if kind.kind == "f" else float(steps) if kind == np.int8 else 0.0
    if not more:
        return made
    return Bounded(made.values, (np.zeros(made.values.shape) if made.error is None else made.error) + more)


def _compared(tensor: TensorRecord, type_: str, found: Array, expected: Bounded) -> TensorComparison:
    wrong = int(outside(found, expected).sum())
    if not evidence_of([found], [expected.values]):
        verdict = Verdict.NOTHING_COMPARED
    elif found.tobytes() == expected.values.astype(found.dtype).tobytes():
        verdict = Verdict.EXACT
    else:
        verdict = Verdict.DIFFERENT if wrong else Verdict.WITHIN_BOUND
    gaps = distance(found, expected.values)
    difference = float(gaps.max(initial=0.0))
    return TensorComparison(
        layer=tensor.layer or "",
        type=type_,
        tensor=tensor.name,
        dtype=str(DataType(tensor.type)),
        elements=found.size,
        difference=difference if math.isfinite(difference) else None,
        share=_share(gaps, expected.error),
        outside=wrong,
        verdict=verdict,
    )


def _share(gaps: Array, error: Array | None) -> float | None:
    known = None if error is None else np.isfinite(error) & np.isfinite(gaps) & (error > 0)
    if error is None or known is None or not known.any():
        return None
    return float((gaps[known] / error[known]).max())
