# SPDX-License-Identifier: Apache-2.0
"""Bounds of the differences between two evaluations of a layer, element by element: running error analysis.

The kernels evaluate floats in float64 and round once; a bound covers this rounding. A bound depends on the operands of
its own element only. `unit` is the unit roundoff of the judged arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule.graph import Array
from ferrule.graph.real_values import ieee_floats
from ferrule.operators.activation import Activation, fused_activation
from ferrule.operators.operator import Arrays, Bound, Evaluation, Operands, required_array

Terms = Callable[[Any, Operands], int]
"""(descriptor, operands) -> the number of terms that each element adds up."""
LARGEST_SUM = 0.99 * float(np.finfo(np.float32).max)
"""A float32 sum of so large magnitudes does not overflow."""
_KAHAN_TERMS = 3
"""What compensated summation counts as: two roundings, and terms of second order."""


def monotone(evaluation: Evaluation) -> list[Array]:
    """Return the bound of an operator that rounds nothing, and rises or falls with each operand.

    That is so for what moves, selects or clamps values, and for tables. Where operands may be off, the extremes are at
    the ends of their intervals.
    """
    bounds = [np.zeros(output.shape) for output in evaluation.outputs]
    for inputs in _ends(evaluation):
        with np.errstate(all="ignore"):
            made = evaluation.kernel(evaluation.descriptor, evaluation.operands, inputs)
        bounds = [
            np.maximum(bound, distance(one, other))
            for bound, one, other in zip(bounds, made, evaluation.outputs, strict=True)
        ]
    return bounds


def known_inputs(evaluation: Evaluation) -> list[Array]:
    """Return the bound of an operator that rounds nothing, and has none if inputs are off, such as ARG_MAX."""
    value = 0.0 if evaluation.is_exact else np.inf
    return [np.full(output.shape, value) for output in evaluation.outputs]


def known(*positions: int) -> Bound:
    """Return `monotone` for operators of which the inputs at some positions, such as indices, must not be off."""

    def bound(evaluation: Evaluation) -> list[Array]:
        errors = evaluation.errors
        is_known = all(errors[index] is None for index in positions if index < len(errors))
        return monotone(evaluation) if is_known else known_inputs(evaluation)

    return bound


def of_floats(bound: Bound, otherwise: Bound = known_inputs) -> Bound:
    """Return a bound for float outputs, with another one for the operator's other types."""

    def chosen(evaluation: Evaluation) -> list[Array]:
        return (bound if evaluation.outputs[0].dtype.kind == "f" else otherwise)(evaluation)

    return chosen


def rounded(units: float = 0.0, slope: float | None = None) -> Bound:
    """Return the bound of a function with one rounded result for each element.

    `units` are the units in the last place by which Ferrule's C may differ from the kernel. `slope` limits how fast a
    function changes that does not only rise or fall.
    """

    def bound(evaluation: Evaluation) -> list[Array]:
        outputs = evaluation.outputs
        moved = monotone(evaluation) if slope is None else [slope * or_zeros(evaluation.errors[0], outputs[0])]
        return [
            each + rounding(evaluation, np.abs(output.astype(np.float64)) + each, units)
            for each, output in zip(moved, outputs, strict=True)
        ]

    return of_floats(bound, monotone if slope is None else known_inputs)


def rounding(evaluation: Evaluation, magnitude: Array, units: float | Array) -> Array:
    """Return `units` in the last place of results of a magnitude, with what the arithmetic may be off beside."""
    count = units + evaluation.arithmetic.spare
    if not np.any(count):
        return np.zeros(magnitude.shape)
    with np.errstate(invalid="ignore"):
        return np.asarray(count * (2 * evaluation.arithmetic.unit * magnitude + least(evaluation)))


def least(evaluation: Evaluation) -> float:
    """Return the smallest positive number of the arithmetic: the error of a product that underflows."""
    own = float(np.finfo(evaluation.outputs[0].dtype).smallest_subnormal)
    return max(own, evaluation.arithmetic.smallest)


def sums(terms: Terms, divisor: Terms | None = None) -> Bound:
    """Return the bound of sums of products, and of sums: unit roundoff times terms times the sum of magnitudes.

    The sum of magnitudes is the kernel's result for the magnitudes of all operands, without an activation. Where it
    overflows before it is divided by at most `divisor`, the bound is infinite.
    """

    def fits(evaluation: Evaluation, magnitude: Array) -> Array | bool:
        return divisor is None or divisor(evaluation.descriptor, evaluation.operands) * magnitude < LARGEST_SUM

    def bound(evaluation: Evaluation) -> list[Array]:
        count = terms(evaluation.descriptor, evaluation.operands)
        exact = _magnitudes(evaluation, [None] * len(evaluation.inputs))
        wide = exact if evaluation.is_exact else _magnitudes(evaluation, evaluation.errors)
        return [
            np.where(
                fits(evaluation, there), accumulated(evaluation, there, count) + _grown(evaluation, here, there), np.inf
            )
            for here, there in zip(exact, wide, strict=True)
        ]

    return of_floats(bound)


def accumulated(evaluation: Evaluation, magnitude: Array, terms: int) -> Array:
    """Return the rounding error of sums of a number of terms, from the sum of their magnitudes."""
    unit = evaluation.arithmetic.unit
    count = (terms + 3 + 2 * evaluation.arithmetic.spare) * unit  # one more, the kernel's rounding, the magnitude's own
    factor = count / (1 - count) if count < 1 else np.inf
    with np.errstate(invalid="ignore"):
        return or_infinite(factor * magnitude + (terms + 1) * least(evaluation))


def mean_terms(_: Any, __: Operands) -> int:  # noqa: ANN401 - any descriptor
    """Return what compensated sums count as, whose errors do not grow with the number of terms."""
    return _KAHAN_TERMS


def or_zeros(values: Array | None, like: Array) -> Array:
    """Return errors as float64: zeros of a shape if there are none."""
    return np.zeros(like.shape) if values is None else np.asarray(values, np.float64)


def or_infinite(values: Array) -> Array:
    """Return errors with infinity for those that are not a number."""
    return np.nan_to_num(values, nan=np.inf, posinf=np.inf)


def in_float64(evaluation: Evaluation) -> tuple[Array, Array, Array]:
    """Return the first input, how far its elements may be away, and the first output, all as float64."""
    data = required_array(evaluation.inputs, 0)
    return data.astype(np.float64), or_zeros(evaluation.errors[0], data), evaluation.outputs[0].astype(np.float64)


def _grown(evaluation: Evaluation, here: Array, there: Array) -> Array:
    """Return how much a sum of magnitudes grows by its operands' errors; each was rounded once."""
    if here is there:
        return np.zeros(here.shape)
    with np.errstate(invalid="ignore"):
        return or_infinite(there - here + 4 * evaluation.arithmetic.unit * there)


def _magnitudes(evaluation: Evaluation, errors: Arrays) -> list[Array]:
    """Return the outputs for the magnitudes of all operands and their errors; infinity where they are too large."""
    inputs: list[Array | None] = []
    for array, error in zip(evaluation.inputs, errors, strict=True):
        if array is None or array.dtype.kind != "f":
            inputs.append(array)
        elif error is None:
            inputs.append(np.abs(array))
        else:
            inputs.append(_cast(np.abs(array.astype(np.float64)) + error, array.dtype, upwards=True))
    descriptor = evaluation.descriptor
    if fused_activation(descriptor) is not None:
        descriptor = replace(descriptor, activation=Activation.NONE)
    with np.errstate(all="ignore"):
        made = evaluation.kernel(descriptor, evaluation.operands, inputs)
    largest = np.finfo(evaluation.outputs[0].dtype).max
    return [np.where(each < largest, each.astype(np.float64), np.inf) for each in made]


def _ends(evaluation: Evaluation) -> Iterator[list[Array | None]]:
    """Yield the inputs with those that may be off at the ends of their intervals: two of them in each combination."""
    moved = [index for index, error in enumerate(evaluation.errors) if error is not None]
    if not moved:
        return
    signs = itertools.product((1, -1), repeat=len(moved)) if len(moved) <= 2 else ((s,) * len(moved) for s in (1, -1))
    for combination in signs:
        inputs = list(evaluation.inputs)
        for index, sign in zip(moved, combination, strict=True):
            inputs[index] = _shifted(evaluation.inputs[index], evaluation.errors[index], sign)
        yield inputs


def _shifted(array: Array | None, error: Array | None, sign: int) -> Array:
    assert array is not None, "an absent input is not off"
    assert error is not None, "the caller chose those that are off"
    if array.dtype == np.bool_:
        return (array | (error > 0)) if sign > 0 else (array & (error == 0))
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            values = array.astype(np.float64) + sign * error
        return np.where(error == 0, array, _cast(values, array.dtype, upwards=sign > 0))
    limits = np.iinfo(array.dtype)
    steps = np.minimum(error, float(limits.max))
    values = np.clip(array.astype(np.float64) + sign * steps, float(limits.min), np.nextafter(float(limits.max), 0))
    return np.where(error == 0, array, values.astype(array.dtype))


def _cast(values: Array, dtype: np.dtype[Any], *, upwards: bool) -> Array:
    """Return float64 numbers in another float type, rounded away to one side."""
    with ieee_floats():
        cast = values.astype(dtype)
        return np.where(cast == values, cast, np.nextafter(cast, dtype.type(np.inf if upwards else -np.inf)))


def distance(one: Array, other: Array) -> Array:
    """Return the differences of elements; infinity if only one of them is infinite or not a number."""
    first, second = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.abs(first - second)
    same = (one == other) | (np.isnan(first) & np.isnan(second))
    return np.where(same, 0.0, or_infinite(gap))
