# SPDX-License-Identifier: Apache-2.0
"""ELEMENTWISE: operations on one or two feature maps, or on one and a scalar.

ADD and SUB scale their operands before: both by a factor of 16 bits, or one of them by OPA_SCALE and the other by a
power of two. The factors belong to the operands after the order bit, which makes IFM2 the first operand. With 32 bits,
the factor of OFM_SCALE is ignored and its shift applies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule._typing import override
from ferrule.backends.ethos_u.arithmetic import IDENTITY, Int64, Scale, rounding, shift_right, stated_scale
from ferrule.backends.ethos_u.commands import Elementwise, Long, Short
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.errors import UnsupportedModeError
from ferrule.backends.ethos_u.feature_map import element_type, feature_map, zero_point
from ferrule.backends.ethos_u.kernel import ZEROS, Computing, Window, upscale_mode
from ferrule.backends.ethos_u.machine import Machine
from ferrule.backends.ethos_u.stream import Operation, Registers

UNARY = frozenset({Elementwise.LRELU, Elementwise.ABS, Elementwise.CLZ})
_BOTH, _FIRST, _SECOND = 0, 1, 2
_AXES, _SWAPPED, _SCALAR = (1, 2, 4), 0x40, 0x80
_SHIFTS = frozenset({Elementwise.SHR, Elementwise.SHL})
_MAX_SHIFT = 63
_STRIP_ELEMENTS = 1 << 20


class ElementwiseKernel(Computing):
    """ELEMENTWISE, prepared from its registers."""

    def __init__(self, operation: Operation, configuration: Configuration) -> None:
        super().__init__(operation, configuration)
        registers = operation.registers
        self.mode = Elementwise(operation.parameter)
        extent = self.ofm.height, self.ofm.width, self.ofm.depth
        self.window = Window(height=extent[0], width=extent[1], upscale=upscale_mode(registers))
        if self.window.upscale == ZEROS:
            raise UnsupportedModeError("ELEMENTWISE of an IFM that is upscaled with zeros is not supported")
        self.ifm = feature_map(registers, "IFM", *self.window.stored_extent(), extent[2])
        broadcast = 0 if self.mode in UNARY else registers[Short.IFM2_BROADCAST]
        self.swapped = bool(broadcast & _SWAPPED)
        self.scalar = 0
        """In place of an IFM2."""
        if broadcast & _SCALAR:
            self.scalar = _scalar(registers)
        elif self.mode not in UNARY:
            sizes = (1 if broadcast & bit else size for bit, size in zip(_AXES, extent, strict=True))
            self.ifm2 = feature_map(registers, "IFM2", *sizes)
        self.scale = stated_scale(registers)
        self.is_scaled = bool(registers[Short.OFM_PRECISION] & 0x100)
        self.first = self.second = IDENTITY
        if self.mode in {Elementwise.ADD, Elementwise.SUB}:
            self._operand_scales(registers)
        self.work = self.work_of(0)

    def _operand_scales(self, registers: Registers) -> None:
        """Read OPA_SCALE and OPB_SCALE for the scaling of operands that the IFM's precision states."""
        factor, parameter = registers.payload(Long.OPA_SCALE, 1)
        scaling = registers[Short.IFM_PRECISION] >> 8 & 3
        if scaling == _BOTH:
            other, _ = registers.payload(Long.OPB_SCALE, 1)
            self.first, self.second = (replace(IDENTITY, factor=each & 0xFFFF) for each in (factor, other))
            return
        if scaling not in {_FIRST, _SECOND}:
            raise UnsupportedModeError(f"there is no scaling {scaling} of the operands")
        headroom = 20 if self.ifm.dtype.itemsize == 1 else 15
        mode = rounding(registers, Short.IFM_PRECISION)
        scaled = Scale(factor=factor, shift=parameter & 63, mode=mode, headroom=headroom)
        raised = replace(IDENTITY, factor=1 << (headroom - 1))
        self.first, self.second = (scaled, raised) if scaling == _FIRST else (raised, scaled)

    @override
    def execute(self, machine: Machine) -> None:
        first = self.window.extend(self.ifm.read(machine)).astype(np.int64) - self.ifm.zero_point
        second = np.full((1, 1, 1), self.scalar, np.int64)
        if self.ifm2 is not None:
            second = self.ifm2.read(machine).astype(np.int64) - self.ifm2.zero_point
        if self.mode in _SHIFTS:
            shifts = first if self.swapped else second
            if int(shifts.min()) < 0 or int(shifts.max()) > _MAX_SHIFT:
                raise UnsupportedModeError(f"{self.mode.name} by {int(shifts.min())} to {int(shifts.max())} bits")
        out = np.empty((self.ofm.height, self.ofm.width, self.ofm.depth), self.ofm.dtype)
        rows = max(1, _STRIP_ELEMENTS // (self.ofm.width * self.ofm.depth))
        for y in range(0, self.ofm.height, rows):
            operands = first[y : y + rows], second if len(second) == 1 else second[y : y + rows]
            if self.mode in UNARY:
                values = self._unary(operands[0])
            else:
                values = self._binary(*(operands[::-1] if self.swapped else operands))
            shape = out[y : y + rows].shape
            out[y : y + rows] = self.activation.apply(np.broadcast_to(values, shape), machine)
        self.ofm.write(machine, out)

    def _unary(self, values: Int64) -> Int64:
        if self.mode is Elementwise.ABS:
            return self.scale.apply(np.abs(values))
        if self.mode is Elementwise.LRELU:
            return np.where(values >= 0, values, self.scale.apply(values))
        return leading_zeros(values)

    def _binary(self, first: Int64, second: Int64) -> Int64:
        match self.mode:
            case Elementwise.MUL:
                return self._rescaled(first * second)
            case Elementwise.ADD | Elementwise.SUB:
                left, right = self.first.apply(first), self.second.apply(second)
                total = left + right if self.mode is Elementwise.ADD else left - right
                return self._rescaled(total) if self.is_scaled else total
            case Elementwise.MIN:
                return np.minimum(first, second)
            case Elementwise.MAX:
                return np.maximum(first, second)
        if self.mode is Elementwise.SHR:
            return shift_right(first, second, self.scale.mode)
        return ((first << second) + (1 << 31) & 0xFFFFFFFF) - (1 << 31)

    def _rescaled(self, values: Int64) -> Int64:
        """Return values scaled by OFM_SCALE, or by its shift only if the IFM has 32 bits."""
        if self.ifm.dtype.itemsize == 4:
            return shift_right(values, self.scale.shift, self.scale.mode)
        return self.scale.apply(values)


def leading_zeros(values: Int64) -> Int64:
    """Return the number of leading zeros of 32-bit words; 32 for 0."""
    words = values & 0xFFFFFFFF
    _, exponents = np.frexp(words.astype(np.float64))  # exact below 2**53
    return 32 - exponents.astype(np.int64)


def _scalar(registers: Registers) -> int:
    """Return the scalar in place of IFM2, without its zero point."""
    dtype, _ = element_type(registers, "IFM2")
    value = registers.signed(Short.IFM2_SCALAR) if dtype.kind == "i" else registers[Short.IFM2_SCALAR]
    return value - zero_point(registers, "IFM2", dtype)
