# SPDX-License-Identifier: Apache-2.0
"""Random operations of Ethos-U: their registers, and a memory that has all that they access."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from ethos_u_streams import SCRATCH, settings, short, stop
from numpy.typing import NDArray
from vela_cases import Choosing

from ferrule.backends.ethos_u.commands import Elementwise, Kind, Long, Pool, Short
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.machine import LUT_BYTES
from ferrule.backends.ethos_u.weight_order import WeightOrder

READ_ONLY = 0
MAP_BYTES = 1 << 14
"""The space of each feature map in the scratch; the maps do not overlap."""
SCALES_AT = 1 << 18
TABLES_AT = SCALES_AT + 10 * 64
TYPES = {"uint8": (0, 0), "int8": (1, 0), "int16": (1, 1), "int32": (1, 2), "uint32": (0, 2)}
"""Sign and width in the precision registers."""
_TABLE_FUNCTIONS = (16, 18, 20)


@dataclass(slots=True)
class Drawn(Choosing):
    """An operation with random registers."""

    kind: Kind
    mode: int
    seed: int
    compiled_for: Configuration
    registers: dict[Short | Long, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    weights: NDArray[np.int16] | None = None
    """In stream order."""

    def words(self) -> NDArray[np.uint32]:
        """Return a stream that fills the look-up tables, does this operation and stops."""
        copied: dict[Short | Long, int] = {
            Short.DMA0_SRC_REGION: READ_ONLY,
            Short.DMA0_DST_REGION: 0x100,
            Long.DMA0_SRC: TABLES_AT,
            Long.DMA0_DST: self.compiled_for.shram_bytes - LUT_BYTES,
            Long.DMA0_LEN: LUT_BYTES,
        }
        before = [*settings(copied), *short(Kind.DMA_START), *short(Kind.DMA_WAIT)]
        return np.array([*before, *settings(self.registers), *short(self.kind, self.mode), *stop()], np.uint32)

    def one(self, *values: str) -> str:
        """Draw one of several values."""
        return values[self.between(0, len(values) - 1)]


def draw(kind: Kind, mode: int, seed: int, compiled_for: Configuration) -> Drawn:
    """Return an operation; the same arguments give the same registers."""
    drawn = Drawn(np.random.default_rng([int(kind), mode, seed]), kind, mode, seed, compiled_for)
    height, width, depth = drawn.between(1, 7), drawn.between(1, 7), drawn.between(1, 37)
    if kind is Kind.POOL and mode == Pool.REDUCE_SUM:
        depth = 1
    _output(drawn, (height, width, depth))
    if kind is Kind.ELEMENTWISE:
        _elementwise(drawn, (height, width, depth))
    else:
        _windowed(drawn, (height, width, depth), compiled_for)
    return drawn


def memory(drawn: Drawn) -> dict[int, NDArray[np.uint8]]:
    """Return the read-only region and the scratch, with random contents."""
    dice = np.random.default_rng([1, drawn.seed])
    scratch = dice.integers(0, 256, 3 * MAP_BYTES, np.uint8)
    read_only = np.zeros(TABLES_AT + LUT_BYTES, np.uint8)
    read_only[TABLES_AT:] = dice.integers(0, 256, LUT_BYTES, np.uint8)
    if drawn.weights is not None:
        data = plain_weights(drawn.weights)
        read_only[: len(data)] = np.frombuffer(data, np.uint8)
        for channel in range(64):
            bias = int(dice.integers(-5000, 5000)).to_bytes(5, "little", signed=True)
            scale = int(dice.integers(1 << 30, 1 << 31)).to_bytes(4, "little")
            entry = bias + scale + bytes([int(dice.integers(30, 43))])
            read_only[SCALES_AT + 10 * channel :][:10] = np.frombuffer(entry, np.uint8)
    return {READ_ONLY: read_only, SCRATCH: scratch}


def plain_weights(values: NDArray[np.int16]) -> bytes:
    """Return weights as a stream that is not compressed: 9 bits each, in slices of 32768."""
    bits: list[NDArray[np.uint8]] = []
    for start in range(0, len(values), 32768):
        part = values[start : start + 32768].astype(np.int64)
        # no zero runs, length - 1, not compressed, a new palette without entries, 9 bits
        for value, size in ((6, 3), (len(part) - 1, 15), (7, 3), (0, 1), (1, 1), (0, 5), (0, 5), (7, 3)):
            bits.append((value >> np.arange(size) & 1).astype(np.uint8))
        codes = np.abs(part) << 1 | (part < 0)
        bits.append((codes[:, None] >> np.arange(9) & 1).astype(np.uint8).reshape(-1))
    stream = np.concatenate(bits)
    filled = np.concatenate([stream, np.ones(-len(stream) % 128, np.uint8)])
    return np.packbits(filled, bitorder="little").tobytes()


def _place(drawn: Drawn, name: str, number: int, shape: tuple[int, int, int]) -> None:
    """Draw layout, strides and tiles of a feature map in its part of the scratch."""
    height, width, depth = shape
    sign, bits = TYPES[drawn.types[name]]
    size = 1 << bits
    bricks = drawn.below(0.4)
    stride_x = (16 if bricks else depth + drawn.between(0, 2)) * size
    stride_c = width * stride_x + 16 * drawn.between(0, 1) if bricks else size
    stride_y = -(-depth // 16) * stride_c if bricks else width * stride_x + size * drawn.between(0, 3)
    rows, columns = drawn.between(1, height + 1), drawn.between(1, width + 1)
    precision = sign | bits << (1 if name == "OFM" else 2) | (0x40 if bricks else 0)
    start = number * MAP_BYTES
    split = rows * stride_y
    bases = [start, start, start + split, start + split]
    if not bricks:
        bases[1] = start + columns * stride_x
        bases[3] = bases[2] + columns * stride_x
    else:
        columns = width
    if number == 2 and not bricks and drawn.below(0.2):
        # mirrored rows; the tiles are one
        bases[0] = start + (height - 1) * stride_y
        stride_y, rows, columns = -stride_y, height, width
    values: dict[Short | Long, int] = {
        Short[f"{name}_REGION"]: SCRATCH,
        Short[f"{name}_PRECISION"]: precision,
        Short[f"{name}_ZERO_POINT"]: drawn.between(0, 255) if sign == 0 else drawn.between(-128, 127),
        Short[f"{name}_WIDTH0_M1"]: columns - 1,
        Short[f"{name}_HEIGHT0_M1"]: rows - 1,
        Short[f"{name}_HEIGHT1_M1"]: rows - 1,
        Long[f"{name}_STRIDE_X"]: stride_x,
        Long[f"{name}_STRIDE_Y"]: stride_y & 0xFFFF_FFFF,
        Long[f"{name}_STRIDE_C"]: stride_c,
        **{Long[f"{name}_BASE{tile}"]: base for tile, base in enumerate(bases)},
    }
    drawn.registers |= values


def _output(drawn: Drawn, shape: tuple[int, int, int]) -> None:
    drawn.types["OFM"] = drawn.one("uint8", "int8", "int8", "int16", "int32")
    _place(drawn, "OFM", 2, shape)
    registers = drawn.registers
    registers[Short.OFM_PRECISION] |= (2 if drawn.below(0.4) else 0) << 14
    kind = drawn.types["OFM"]
    low, high = {"uint8": (0, 255), "int8": (-128, 127)}.get(kind, (-32768, 32767))
    function = drawn.between(0, 9)
    function = _TABLE_FUNCTIONS[function] if function < len(_TABLE_FUNCTIONS) else 0
    if kind == "int16":
        function = {16: 16, 18: 3, 20: 4}.get(function, 0)
    if kind == "int32":
        function = 16 if function else 0
        low, high = -128, 127
    forced = 3 << 12 if kind == "int32" and function else 0
    if drawn.below(0.3):
        low, high = low + (high - low) // 5, high - (high - low) // 4
    registers |= {
        Short.OFM_HEIGHT_M1: shape[0] - 1,
        Short.OFM_WIDTH_M1: shape[1] - 1,
        Short.OFM_DEPTH_M1: shape[2] - 1,
        Short.OFM_BLK_DEPTH_M1: 8 * drawn.between(1, 4) - 1,
        Short.ACTIVATION: function | forced,
        Short.ACTIVATION_MIN: low,
        Short.ACTIVATION_MAX: high,
    }


def _scale(drawn: Drawn, code: Long, low: int, high: int) -> None:
    drawn.registers[code] = drawn.between(1 << 28, (1 << 32) - 1) | drawn.between(low, high) << 32


def _elementwise(drawn: Drawn, shape: tuple[int, int, int]) -> None:
    mode = Elementwise(drawn.mode)
    kind = drawn.one("uint8", "int8", "int16", "int32")
    other = kind if drawn.below(0.7) else drawn.one("uint8", "int8", "int16", "int32")
    if mode in {Elementwise.SHR, Elementwise.SHL, Elementwise.CLZ}:
        kind, other = "int32", "uint8"
    drawn.types |= {"IFM": kind, "IFM2": other}
    upscale = 1 if drawn.below(0.1) else 0
    stored = (-(-shape[0] // 2), -(-shape[1] // 2), shape[2]) if upscale else shape
    _place(drawn, "IFM", 0, stored)
    broadcast = drawn.between(0, 7) if drawn.below(0.5) else 0
    extent = [1 if broadcast >> axis & 1 else size for axis, size in enumerate(shape)]
    _place(drawn, "IFM2", 1, (extent[0], extent[1], extent[2]))
    is_shift = mode in {Elementwise.SHR, Elementwise.SHL}
    if is_shift:
        broadcast, drawn.registers[Short.IFM2_ZERO_POINT] = 0x80, 0
    elif drawn.below(0.3):
        broadcast |= 0x80
    if drawn.below(0.4) and not is_shift:
        broadcast |= 0x40
    scaling = drawn.between(0, 2)
    drawn.registers |= {
        Short.IFM2_BROADCAST: broadcast,
        Short.IFM2_SCALAR: drawn.between(0, 40),
        Short.IFM_UPSCALE: upscale,
    }
    drawn.registers[Short.IFM_PRECISION] |= scaling << 8 | (2 << 14 if drawn.below(0.5) else 0)
    drawn.registers[Short.OFM_PRECISION] |= 0x100 if drawn.below(0.8) else 0
    _scale(drawn, Long.OFM_SCALE, 0, 20) if kind == "int32" else _scale(drawn, Long.OFM_SCALE, 28, 45)
    _scale(drawn, Long.OPA_SCALE, 15, 32)
    drawn.registers[Long.OPB_SCALE] = drawn.between(1, 0xFFFF)


def _windowed(drawn: Drawn, shape: tuple[int, int, int], compiled_for: Configuration) -> None:
    registers = drawn.registers
    reduces = drawn.kind is Kind.POOL and drawn.mode == Pool.REDUCE_SUM
    weighted = drawn.kind is not Kind.POOL
    drawn.types["IFM"] = (
        drawn.one("int8", "uint8", "int16") if weighted else drawn.one("int8", "uint8", "int16", "int32")
    )
    taps = [drawn.between(1, 4), drawn.between(1, 4)] if not reduces else [1, 1]
    dilation = [drawn.between(1, 2), drawn.between(1, 2)] if weighted and drawn.below(0.3) else [1, 1]
    stride = [drawn.between(1, 3), drawn.between(1, 3)] if not reduces else [1, 1]
    extent = [(count - 1) * gap + 1 for count, gap in zip(taps, dilation, strict=True)]
    padded = drawn.below(0.5) and not reduces
    pads = [drawn.between(0, extent[axis // 2] - 1) if padded else 0 for axis in range(4)]
    for axis in range(2):  # the IFM must not be empty
        covered = (shape[axis] - 1) * stride[axis] + extent[axis]
        while pads[2 * axis] + pads[2 * axis + 1] >= covered:
            pads[2 * axis : 2 * axis + 2] = [0, 0]
    full = [(shape[axis] - 1) * stride[axis] + extent[axis] - pads[2 * axis] - pads[2 * axis + 1] for axis in range(2)]
    upscale = drawn.between(1, 2) if drawn.below(0.1) and not reduces else 0
    height, width = (-(-size // 2) for size in full) if upscale else full
    depth = (
        shape[2] if drawn.kind is Kind.DEPTHWISE or (drawn.kind is Kind.POOL and not reduces) else drawn.between(1, 20)
    )
    _place(drawn, "IFM", 0, (height, width, depth))
    word = (stride[1] - 1 & 1) | (stride[0] - 1 & 1) << 1 | (stride[1] - 1 >> 1) << 6 | (stride[0] - 1 >> 1) << 9
    part_kernel = drawn.kind is Kind.CONV and drawn.below(0.4)
    registers |= {
        Short.IFM_DEPTH_M1: depth - 1,
        Short.IFM_UPSCALE: upscale,
        Short.IFM_PAD_TOP: pads[0],
        Short.IFM_PAD_BOTTOM: pads[1],
        Short.IFM_PAD_LEFT: pads[2],
        Short.IFM_PAD_RIGHT: pads[3],
        Short.KERNEL_HEIGHT_M1: extent[0] - 1,
        Short.KERNEL_WIDTH_M1: extent[1] - 1,
        Short.KERNEL_STRIDE: word | (dilation[1] - 1) << 3 | (dilation[0] - 1) << 4 | 4 * part_kernel,
    }
    if not weighted or drawn.below(0.2):
        registers[Short.OFM_PRECISION] |= 0x100
    _scale(drawn, Long.OFM_SCALE, 30, 44)
    if drawn.types["IFM"] == "int32":  # products of sums with a larger factor exceed 64 bits
        registers[Long.OFM_SCALE] &= ~0xFFFF_0000
    if weighted:
        order = WeightOrder(
            ofm_depth=shape[2],
            ifm_depth=depth,
            kernel_height=taps[0],
            kernel_width=taps[1],
            ofm_block_depth=registers[Short.OFM_BLK_DEPTH_M1] + 1,
            ofm_ublock_depth=compiled_for.ofm_ublock_depth,
            ifm_ublock_depth=compiled_for.ifm_ublock_depth,
            ifm_bits=16 if drawn.types["IFM"] == "int16" else 8,
            part_kernel=part_kernel,
            depthwise=drawn.kind is Kind.DEPTHWISE,
            dilation_height=dilation[0],
            dilation_width=dilation[1],
        )
        drawn.weights = drawn.dice.integers(-255, 256, order.count).astype(np.int16)
        registers |= {
            Short.WEIGHT_REGION: READ_ONLY,
            Short.SCALE_REGION: READ_ONLY,
            Long.WEIGHT_BASE: 0,
            Long.WEIGHT_LENGTH: len(plain_weights(drawn.weights)),
            Long.SCALE_BASE: SCALES_AT,
        }
