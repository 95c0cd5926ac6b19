# SPDX-License-Identifier: Apache-2.0
"""The row of Einsum: sums of products over named axes, as transpositions and products of matrices."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.layout import identity
from ferrule.formats.onnx.rows import MANY, Row
from ferrule.graph import Array, LayerType, Shape
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor

_ELLIPSIS = "0123456789"
"""The names of the axes of an ellipsis, the last one first; the format has letters alone."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A tensor, and one name for each of its axes."""

    value: Value
    names: str

    @property
    def extents(self) -> dict[str, int]:
        return dict(zip(self.names, self.value.shape, strict=True))

    def transposed(self, names: str) -> _Term:
        """Return the tensor with its axes in another order."""
        permutation = tuple(self.names.index(name) for name in names)
        if permutation == identity(len(permutation)):
            return self
        return _Term(self.value.then(TransposeDescriptor(permutation=permutation)), names)

    def summed(self, kept: str) -> _Term:
        """Return the sum over the axes whose names are not kept."""
        axes = tuple(axis for axis, name in enumerate(self.names) if name not in kept)
        if not axes:
            return self
        summed = self.value.then(LayerType.SUM, ReduceDescriptor(axes=axes, keep_dims=False))
        return _Term(summed, "".join(name for name in self.names if name in kept))


def _einsum(call: Call) -> Value:
    inputs, output = _equation(call)
    _check_extents(call, inputs)
    term = _Term(call.tensor(0), inputs[0]).summed("".join([*inputs[1:], output]))
    for position, names in enumerate(inputs[1:], 1):
        needed = "".join([*inputs[position + 1 :], output])
        weights = call.constant(position)
        if weights is not None and weights.dtype == np.float32 and _is_dense(call, position, term, names, needed):
            term = _dense(call, term, names, weights, needed)
        else:
            term = _product(term, _Term(call.tensor(position), names), needed)
    return term.transposed(output).value


def _equation(call: Call) -> tuple[list[str], str]:
    """Return the names of the axes of each input and of the output, with digits for those of an ellipsis."""
    text = call.node.text("equation").replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    parts = [*inputs, *([output] if arrow else [])]
    if len(inputs) != len(call.node.inputs) or not all(
        re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", each) for each in parts
    ):
        raise ModelError(f"its equation '{text}' does not fit {len(call.node.inputs)} inputs")
    more = [call.rank(position) - len(names.replace("...", "")) for position, names in enumerate(inputs)]
    if any(count < 0 or (count and "..." not in names) for count, names in zip(more, inputs, strict=True)):
        raise ModelError(f"its equation '{text}' names other numbers of axes than its inputs have")
    if max(more) > len(_ELLIPSIS):
        raise UnsupportedError(f"its ellipsis stands for {max(more)} axes, expected at most {len(_ELLIPSIS)}")
    names = [each.replace("...", _ELLIPSIS[:count][::-1]) for count, each in zip(more, inputs, strict=True)]
    if not arrow:
        single = sorted(name for name in set(left) if name.isalpha() and left.count(name) == 1)
        output = "..." * ("..." in left) + "".join(single)
    output = output.replace("...", _ELLIPSIS[: max(more)][::-1])
    if len(set(output)) != len(output) or not set(output) <= set("".join(names)):
        raise ModelError(f"its equation '{text}' has an output whose axes are not those of its inputs, once each")
    if any(len(set(each)) != len(each) for each in names):
        raise UnsupportedError(
            f"its equation '{text}' repeats an axis in one input, which takes a diagonal", hint="multiply by a mask"
        )
    return names, output


def _check_extents(call: Call, inputs: Sequence[str]) -> None:
    """Refuse a name that stands for several extents."""
    found: dict[str, int] = {}
    for position, names in enumerate(inputs):
        for name, extent in zip(names, call.shape(position), strict=True):
            if found.setdefault(name, extent) != extent:
                raise UnsupportedError(
                    f"an axis of its equation has the extents {found[name]} and {extent}, expected one",
                    hint="expand the shorter input before (torch.expand)",
                )


def _is_dense(call: Call, position: int, left: _Term, names: str, needed: str) -> bool:
    """Return whether a product with a constant is one of a computed tensor and a single matrix."""
    is_computed = position > 1 or call.constant(0) is None
    has_batch = any(name in left.names and name in needed for name in names)
    return is_computed and not has_batch and set(names) <= {*left.names, *needed}


def _dense(call: Call, left: _Term, names: str, weights: Array, needed: str) -> _Term:
    """Return the sum of products of a tensor and a constant matrix, see `_is_dense`, as FULLY_CONNECTED.

    Its weights can be quantised per channel, other than those of BATCH_MATMUL.
    """
    left = left.summed(names + needed)
    extents = left.extents | dict(zip(names, weights.shape, strict=True))
    inner = "".join(name for name in left.names if name in names)
    rows = "".join(name for name in left.names if name not in names)
    columns = "".join(name for name in names if name not in left.names)
    height, depth, width = (math.prod(extents[name] for name in part) for part in (rows, inner, columns))
    matrix = weights.transpose([names.index(name) for name in columns + inner]).reshape(width, depth)
    first = left.transposed(rows + inner).value.reshaped((height, depth))
    product = first.then(FullyConnectedDescriptor(), call.array(matrix, "weights"))
    return _Term(product.reshaped(tuple(extents[name] for name in rows + columns)), rows + columns)


def _product(left: _Term, right: _Term, needed: str) -> _Term:
    """Return the sum of products of two tensors over the axes that are not needed any more."""
    left, right = left.summed(right.names + needed), right.summed(left.names + needed)
    extents = left.extents | right.extents
    shared = [name for name in left.names if name in right.names]
    batch = "".join(name for name in shared if name in needed)
    inner = "".join(name for name in shared if name not in needed)
    rows = "".join(name for name in left.names if name not in right.names)
    columns = "".join(name for name in right.names if name not in left.names)

    def sizes(*parts: str) -> Shape:
        return tuple(math.prod(extents[name] for name in part) for part in parts)

    first = left.transposed(batch + rows + inner).value.reshaped(sizes(batch, rows, inner))
    second = right.transposed(batch + inner + columns).value.reshaped(sizes(batch, inner, columns))
    names = batch + rows + columns
    product = first.then(BatchMatmulDescriptor(adj_x=False, adj_y=False), second)
    return _Term(product.reshaped(sizes(*names)), names)


ROWS: Mapping[str, Row] = {"Einsum": Row(_einsum, 1, MANY)}
