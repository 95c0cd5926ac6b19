# SPDX-License-Identifier: Apache-2.0
"""Compares the tensors of a generated class with the numpy reference, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.codegen.acl import ArtifactRecord, TensorRecord
from ferrule.graph import Array, DataType, Layer
from ferrule.network import Network
from ferrule.report.compare import worst
from ferrule.report.document import Verdict
from ferrule.report.evidence import evidence_of

TOLERANCES = {DataType.FLOAT32: 1e-5, DataType.FLOAT16: 1e-2}
"""Largest |difference| / max |reference| of a tensor, with exact inputs of its layer."""
STEPS = 1
"""Largest difference of an int8 value, in steps of its quantisation, with exact inputs of its layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorComparison:
    """The comparison of one tensor with the reference."""

    layer: str
    type: str
    """The type of the layer."""
    tensor: str
    dtype: str
    difference: float | None
    """Floats: max |difference| / max |reference|; integers: the largest difference, in steps. None if not finite."""
    limit: float
    verdict: Verdict


def reference(network: Network, inputs: Sequence[Array] | Mapping[str, Array]) -> dict[str, Array]:
    """Return all tensors that the layers of a network write, computed by the numpy kernels, by name."""
    tensors: dict[str, Array] = {}

    def keep(layer: Layer, results: Sequence[Array]) -> None:
        tensors.update(zip(layer.outputs, (result.copy() for result in results), strict=True))

    network.run(inputs, observe=keep)
    return tensors


def compare_tensors(
    network: Network,
    record: ArtifactRecord,
    found: Mapping[str, Array],
    expected: Mapping[str, Array],
    *,
    tolerance: float | None = None,
) -> tuple[TensorComparison, ...]:
    """Return the comparison of each tensor, in the order in which the layers write them.

    `tolerance` replaces the limit of floats, except for layers whose functions the library approximates.
    """
    types = {output: str(layer.type) for layer in network.layers for output in layer.outputs}
    return tuple(
        _compared(tensor, types[tensor.name], found[tensor.name], expected[tensor.name], tolerance)
        for tensor in record.tensors
        if tensor.layer is not None
    )


def overall(comparisons: Sequence[TensorComparison]) -> Verdict:
    """Return the worst verdict of all tensors, as `worst` does."""
    return worst(each.verdict for each in comparisons)


def _compared(
    tensor: TensorRecord, type_: str, found: Array, expected: Array, tolerance: float | None
) -> TensorComparison:
    dtype = DataType(tensor.type)
    limit = _limit(tensor, dtype, tolerance)
    difference = _difference(found.astype(np.float64), expected.astype(np.float64), relative=dtype.is_float)
    if not evidence_of([found], [expected]):
        verdict = Verdict.NOTHING_COMPARED
    elif found.tobytes() == expected.astype(found.dtype).tobytes():
        verdict = Verdict.EXACT
    else:
        verdict = Verdict.WITHIN_BOUND if difference <= limit else Verdict.DIFFERENT
    return TensorComparison(
        layer=tensor.layer or "",
        type=type_,
        tensor=tensor.name,
        dtype=tensor.type,
        difference=difference if math.isfinite(difference) else None,
        limit=limit,
        verdict=verdict,
    )


def _limit(tensor: TensorRecord, dtype: DataType, tolerance: float | None) -> float:
    if not dtype.is_float:
        return STEPS if dtype is DataType.INT8 else 0
    wanted = TOLERANCES[dtype] if tolerance is None else tolerance
    return max(wanted, tensor.bound or 0.0)


def _difference(found: Array, expected: Array, *, relative: bool) -> float:
    """Return the largest difference; infinity if only one side has a NaN or an infinity somewhere."""
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        gaps = np.where(same, 0.0, np.abs(found - expected))
    largest = float(gaps.max(initial=0.0))
    if math.isnan(largest):
        return math.inf
    if not relative or not largest:
        return largest
    scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    return largest / scale if scale else math.inf
