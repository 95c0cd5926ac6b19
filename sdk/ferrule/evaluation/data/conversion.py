# SPDX-License-Identifier: Apache-2.0
"""Turns the values of data sets into stored values of a model's inputs: no integer is reinterpreted silently."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, InputError
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.running.data_settings import DataSettings

_QUOTIENT = re.compile(r"\s*([0-9.eE+-]+)\s*/\s*([0-9.eE+-]+)\s*")
_REALS = ("float16", "float32", "float64")


@frozen
class Normalisation:
    """real = ((value * scale + offset) - mean) / std, in float32; None leaves a step out."""

    scale: float | None
    offset: float | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    @classmethod
    def of(cls, settings: DataSettings) -> Normalisation:
        """Return that of the `[data]` table; FerruleError if a value is no finite number or a divisor is 0."""
        scale = _number("scale", settings.scale)
        offset = _number("offset", settings.offset)
        for name, values in (("mean", settings.mean), ("std", settings.std)):
            for value in values or ():
                if not _is_float32(value) or (name == "std" and value == 0):
                    raise FerruleError(f"[data] {name} has {value}, expected finite numbers{_not_zero(name)}")
        return cls(scale=scale, offset=offset, mean=settings.mean, std=settings.std)

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.scale, self.offset, self.mean, self.std))

    def apply(self, values: Array, axis: int = -1) -> Array:
        """Return real values, float32; mean and std are per index of `axis` if they are several.

        Raises:
            InputError: their number is not the extent of the axis.
        """
        with np.errstate(all="ignore"):
            real: Array = values.astype(np.float32)
            if self.scale is not None:
                real = real * np.float32(self.scale)
            if self.offset is not None:
                real = real + np.float32(self.offset)
            if self.mean is not None:
                real = real - _along("mean", self.mean, real, axis)
            if self.std is not None:
                real = real / _along("std", self.std, real, axis)
        return real

    def steps(self) -> tuple[str, ...]:
        """Return what is done, for `DataPart.preparation`."""
        affine = "" if self.scale is None else f" * {self.scale:.9g}"
        affine += "" if self.offset is None else f" {'-' if self.offset < 0 else '+'} {abs(self.offset):.9g}"
        steps = [f"value{affine}"] if affine else []
        for word, values in (("minus mean", self.mean), ("divided by std", self.std)):
            if values is not None:
                steps.append(f"{word} {', '.join(f'{value:.9g}' for value in values)}")
        return tuple(steps)


@frozen
class Conversion:
    """Converts arrays to the stored type of one input, by the rule for `integers` in the `[data]` table."""

    info: TensorInfo
    normalisation: Normalisation
    integers: str | None
    axis: int = -1
    """The axis of the channels in an array of samples."""

    @classmethod
    def of(cls, info: TensorInfo, settings: DataSettings) -> Conversion:
        """Return the conversion to an input; FerruleError if the settings are wrong."""
        axis = 1 if settings.layout == "nchw" else -1
        return cls(info=info, normalisation=Normalisation.of(settings), integers=settings.integers, axis=axis)

    def rule(self, dtype: np.dtype[Any], where: str) -> str:
        """Return what becomes of arrays of a type: `stored`, `shift` or `real`.

        Raises:
            InputError: the type is no number, or an integer of which the settings do not say what it means.
        """
        wanted = self.info.dtype.numpy
        native = dtype.newbyteorder("=")
        if native.kind == "f" and native.name in _REALS:
            return "real"
        if native.kind not in "iub":
            raise InputError(f"{where} has values of type {dtype}, expected numbers")
        if self.integers == "real":
            return "real"
        if self.integers == "shift":
            if native != np.uint8 or wanted != np.int8:
                raise InputError(
                    f"{where} is {native} for the {self.info.dtype} input '{self.info.name}', and integers = \"shift\" "
                    "is for uint8 values of an int8 input"
                )
            return self._stored("shift", where)
        if native == wanted and wanted.kind != "f":
            return self._stored("stored", where)
        raise InputError(
            f"{where} is {native}, and the input '{self.info.name}' is {self.info.dtype}: what the integers mean is "
            "not stated",
            hint=_meaning_hint(native, self.info),
        )

    def _stored(self, rule: str, where: str) -> str:
        if self.normalisation:
            raise InputError(
                f"{where} has stored values of the input '{self.info.name}', to which [data] scale, offset, mean and "
                "std do not apply",
                hint='set integers = "real" in [data] if the integers are real values, or remove these settings',
            )
        return rule

    def stored(self, values: Array, rule: str, where: str) -> Array:
        """Return the stored values of an array whose first axis is n times the input's.

        Raises:
            InputError: a value is not a number, or does not fit; the message begins with `where`.
        """
        if rule == "shift":
            return (values.astype(np.int16) - 128).astype(np.int8)
        if rule == "stored":
            return np.ascontiguousarray(values, self.info.dtype.numpy)
        real = self.normalisation.apply(values, self.axis) if self.normalisation else _native_real(values, self.info)
        if real.dtype.kind == "f":
            bad = np.flatnonzero(np.isnan(real.reshape(len(real), -1)).any(axis=1))
            if bad.size:
                raise InputError(f"{where}: row {int(bad[0])} has a value that is not a number (NaN)")
        try:
            return np.ascontiguousarray(self.info.quantize(real))
        except FerruleError as error:
            error.at(where)
            raise

    def steps(self, rule: str) -> tuple[str, ...]:
        """Return what a rule does, for `DataPart.preparation`."""
        if rule == "shift":
            return ("uint8 to int8 by -128",)
        if rule == "stored":
            return ()
        quantised = () if self.info.quantization is None else (f"quantise to {self.info.dtype}",)
        return (*self.normalisation.steps(), *quantised)


def batch_shape(info: TensorInfo, samples: int) -> tuple[int, ...]:
    """Return the shape of some samples of an input, joined along the first axis."""
    return (samples * (info.shape[0] if info.shape else 1), *info.shape[1:])


def samples_in(shape: Sequence[int], info: TensorInfo, where: str) -> int:
    """Return how many samples of an input an array of this shape has.

    The shape is [n * first extent, ...], [n, ...] with the extents of the input, or one of these with extents of 1
    left out or added after the first axis.

    Raises:
        InputError: it is none of these.
    """
    first = info.shape[0] if info.shape else 1
    if shape and shape[0] > 0:
        rest = without_ones(shape[1:])
        if rest == without_ones(info.shape) and (first == 1 or tuple(shape[1:]) == info.shape):
            return shape[0]
        if info.shape and rest == without_ones(info.shape[1:]) and shape[0] % first == 0:
            return shape[0] // first
    expected = ", ".join(["samples", *map(str, info.shape[1:] if first == 1 else info.shape)])
    raise InputError(
        f"{where} has the shape {list(shape)}, and samples of the input '{info.name}' have the shape [{expected}]",
        hint="bring it to this shape with numpy.reshape or numpy.transpose",
    )


def without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without its extents of 1."""
    return tuple(extent for extent in shape if extent != 1)


def _native_real(values: Array, info: TensorInfo) -> Array:
    """Return values for `quantize`, as floats where the tensor is quantised; integers stay exact where it is not."""
    if values.dtype.kind == "f":
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    quantised = info.quantization is not None or info.dtype.numpy.kind == "f"
    return values.astype(np.float32 if values.dtype.itemsize < 4 else np.float64) if quantised else values


def _along(name: str, values: tuple[float, ...], real: Array, axis: int) -> Array:
    array = np.asarray(values, np.float32)
    if len(values) == 1:
        return array
    if real.ndim < 2 or real.shape[axis] != len(values):
        extent = real.shape[axis] if real.ndim >= 2 else 1
        raise InputError(f"[data] {name} has {len(values)} values, and the input has {extent} channels")
    shape = [1] * real.ndim
    shape[axis] = len(values)
    return array.reshape(shape)


def _number(name: str, value: float | str | None) -> float | None:
    if value is None:
        return None
    try:
        match = _QUOTIENT.fullmatch(str(value))
        number = float(match[1]) / float(match[2]) if match else float(value)
    except (ValueError, ZeroDivisionError):
        number = math.nan
    if not _is_float32(number) or (name == "scale" and number == 0):
        raise FerruleError(
            f"[data] {name} is {value!r}, expected a finite number{_not_zero(name)}",
            hint='such as 0.0078125, or the quotient "1/255"',
        )
    return number


def _is_float32(number: float) -> bool:
    return math.isfinite(number) and abs(number) <= float(np.finfo(np.float32).max)


def _not_zero(name: str) -> str:
    return "" if name in {"offset", "mean"} else " other than 0"


def _meaning_hint(dtype: np.dtype[Any], info: TensorInfo) -> str:
    choices = ['integers = "real" in [data] if they are real values, such as pixels, with scale and offset']
    if dtype == np.uint8 and info.dtype is DataType.INT8:
        choices.append('integers = "shift" if they are the stored values plus 128')
    return "; ".join(choices)
