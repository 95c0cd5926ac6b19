# SPDX-License-Identifier: Apache-2.0
"""Single operations of Ethos-U with random registers: the model in numpy and in C against whole numbers of Python."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import children
import numpy as np
import pytest
from ethos_u_operations import READ_ONLY, SCALES_AT, TABLES_AT, Drawn, draw, memory
from ethos_u_streams import SCRATCH, U55
from needs import require_cc, require_sanitizers

from ferrule.backends.ethos_u.commands import Elementwise, Kind, Long, Pool, Short
from ferrule.backends.ethos_u.errors import StreamError
from ferrule.backends.ethos_u.npu import ArrayMemory, Npu
from ferrule.backends.ethos_u.stream import Registers, sign_extend
from ferrule.backends.ethos_u.weight_order import WeightOrder, arranged
from ferrule.operators.arithmetic.sigmoid_table import SIGMOID_TABLE

KINDS = [
    (Kind.CONV, 0),
    (Kind.DEPTHWISE, 0),
    *((Kind.POOL, int(mode)) for mode in Pool),
    *((Kind.ELEMENTWISE, int(mode)) for mode in Elementwise),
]
SMALL = 160
"""Outputs of operations that Python computes one by one."""


def executed(drawn: Drawn, *, native: bool) -> tuple[np.ndarray, str]:
    """Return the scratch after an operation, and its error without a place."""
    regions = memory(drawn)
    npu = Npu(U55, ArrayMemory(regions), native=native)
    error = ""
    try:
        list(npu.steps(drawn.words()))
    except StreamError as caught:
        error = type(caught).__name__
    return regions[SCRATCH], error


def compare_c_with_numpy(seeds: range) -> None:
    """Execute operations of all kinds in both forms."""
    for kind, mode in KINDS:
        seen: Counter[str] = Counter()
        for seed in seeds:
            drawn = draw(kind, mode, seed, U55)
            (slow, slow_error), (fast, fast_error) = executed(drawn, native=False), executed(drawn, native=True)
            assert slow_error == fast_error
            assert np.array_equal(slow, fast), f"{kind.name} {mode}, seed {seed}: {drawn.registers}"
            seen["error" if slow_error else "executed"] += 1
        assert seen["executed"] > len(seeds) // 2, f"{kind.name} {mode}"


def test_c_equals_numpy() -> None:
    require_cc()
    compare_c_with_numpy(range(14))


@pytest.mark.nightly
def test_c_equals_numpy_for_many() -> None:
    require_cc()
    compare_c_with_numpy(range(1000, 1300))


@pytest.mark.nightly
def test_c_under_the_sanitizers() -> None:
    folders = Path(draw.__code__.co_filename).parent, Path(__file__).parent
    environment = children.environment(*folders, **require_sanitizers("address"))
    done = subprocess.run(
        [sys.executable, "-c", SANITIZED, *SANITIZER_FLAGS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


SANITIZER_FLAGS = (
    *("-fsanitize=address,undefined", "-fsanitize-undefined-trap-on-error", "-fno-omit-frame-pointer", "-O1"),
)
SANITIZED = """
import sys
from ferrule.backends.ethos_u import native_structs, npu
functions = native_structs.library(*sys.argv[1:]).functions()
npu.functions = lambda: functions
from test_operations import compare_c_with_numpy
compare_c_with_numpy(range(2000, 2040))
"""


@pytest.mark.parametrize(("kind", "mode"), KINDS)
def test_numpy_equals_python(kind: Kind, mode: int) -> None:
    compared = 0
    for seed in range(100, 125):
        drawn = draw(kind, mode, seed, U55)
        scalar = Scalar(drawn)
        if scalar.height * scalar.width * scalar.depth > SMALL:
            continue
        scratch, error = executed(drawn, native=False)
        if error:
            continue
        compared += 1
        expected = scalar.run()
        assert np.array_equal(scratch, expected), f"seed {seed}: {drawn.registers}"
    assert compared >= 3


def divide(value: int, shift: int, mode: int, headroom: int = 0) -> int:
    """Return value / 2**shift rounded; twice by the rule of gemmlowp where the shift is above 31 - headroom."""
    if not shift:
        return value
    if mode == 2 or shift <= 31 - headroom:
        return (value + (1 << (shift - 1))) >> shift
    nudge = 1 << (30 - headroom)
    return (value + (1 << (shift - 1)) + (nudge if value >= 0 else -nudge)) >> shift


class Scalar:
    """One operation, element by element, with the rules of the facts page."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.regions = memory(drawn)
        self.start = self.regions[SCRATCH].tobytes()
        self.tables = self.regions[READ_ONLY][TABLES_AT:].tobytes()
        shorts = {int(code): value & 0xFFFF for code, value in drawn.registers.items() if isinstance(code, Short)}
        longs = {
            int(code): (value & 0xFFFF_FFFF, value >> 32 & 0xFFFF)
            for code, value in drawn.registers.items()
            if isinstance(code, Long)
        }
        self.registers = Registers(shorts, longs)
        self.height, self.width, self.depth = (
            self.registers[code] + 1 for code in (Short.OFM_HEIGHT_M1, Short.OFM_WIDTH_M1, Short.OFM_DEPTH_M1)
        )

    def address(self, name: str, y: int, x: int, c: int) -> tuple[int, int]:
        """Return the address and the size of an element."""
        registers = self.registers
        rows0, rows1, columns0 = (
            registers[Short[f"{name}_{field}_M1"]] + 1 for field in ("HEIGHT0", "HEIGHT1", "WIDTH0")
        )
        tile = 0
        if x >= columns0:
            tile, x = 1, x - columns0
        rows = rows1 if tile else rows0
        if y >= rows:
            tile, y = tile + 2, y - rows
        size = np.dtype(self.drawn.types[name]).itemsize
        base = registers.address(Long[f"{name}_BASE{tile}"]) + y * registers.stride(Long[f"{name}_STRIDE_Y"])
        if registers[Short[f"{name}_PRECISION"]] >> 6 & 3:
            stride_c = registers.stride(Long[f"{name}_STRIDE_C"])
            return base + c // 16 * stride_c + x * 16 * size + c % 16 * size, size
        return base + x * registers.stride(Long[f"{name}_STRIDE_X"]) + c * size, size

    def element(self, name: str, y: int, x: int, c: int) -> int:
        """Return an element minus its zero point."""
        address, size = self.address(name, y, x, c)
        kind = np.dtype(self.drawn.types[name])
        return int.from_bytes(self.start[address : address + size], "little", signed=kind.kind == "i") - self.zero(name)

    def zero(self, name: str) -> int:
        kind = np.dtype(self.drawn.types[name])
        code = Short[f"{name}_ZERO_POINT"]
        if name != "OFM" and kind.itemsize == 4:
            return 0
        return self.registers.signed(code) if kind.kind == "i" else self.registers[code]

    def upscaled(self, y: int, x: int, c: int) -> int:
        mode = self.registers[Short.IFM_UPSCALE]
        if not mode:
            return self.element("IFM", y, x, c)
        if mode == 2 and (y % 2 or x % 2):
            return 0
        return self.element("IFM", y // 2, x // 2, c)

    def scaled(self, value: int) -> int:
        factor, parameter = self.registers.payload(Long.OFM_SCALE, 1)
        return divide(value * factor, parameter & 63, self.mode)

    @property
    def mode(self) -> int:
        return self.registers[Short.OFM_PRECISION] >> 14

    def run(self) -> np.ndarray:
        """Return the scratch after the operation."""
        result = bytearray(self.start)
        compute = self.operation()
        for y, x, c in np.ndindex(self.height, self.width, self.depth):
            address, size = self.address("OFM", y, x, c)
            value = self.activated(compute(y, x, c))
            result[address : address + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return np.frombuffer(bytes(result), np.uint8)

    def operation(self) -> Callable[[int, int, int], int]:
        if self.drawn.kind is Kind.ELEMENTWISE:
            return self.elementwise
        if self.drawn.kind is Kind.POOL:
            return self.pool
        return self.convolution()

    def activated(self, value: int) -> int:
        registers, kind = self.registers, np.dtype(self.drawn.types["OFM"])
        word = registers[Short.ACTIVATION]
        function = word & 31
        low, high = registers[Short.ACTIVATION_MIN], registers[Short.ACTIVATION_MAX]
        if kind.kind == "i":
            low, high = sign_extend(low, 16), sign_extend(high, 16)
        if kind.itemsize < 4 or function >= 16:
            value += self.zero("OFM")
        if function in {3, 4}:
            value = self.sigmoid_or_tanh(value, function)
        if kind.itemsize < 4 or function >= 16:
            value = min(max(value, low), high)
        if function >= 16:
            return self.looked_up(value, function - 16, kind)
        return min(max(value, -(1 << 31)), (1 << 31) - 1) if kind.itemsize == 4 else value

    def looked_up(self, value: int, slot: int, kind: np.dtype) -> int:
        table = self.tables[256 * slot :]
        if kind.itemsize == 2:
            index, fraction = value + 32768 >> 7, value + 32768 & 127
            base, slope = (int.from_bytes(table[4 * index + at :][:2], "little", signed=True) for at in (0, 2))
            return base + (slope * fraction + 64 >> 7)
        index = value if kind == np.uint8 else value + 128
        return int.from_bytes(table[index * kind.itemsize :][: kind.itemsize], "little", signed=kind.kind == "i")

    @staticmethod
    def sigmoid_or_tanh(value: int, function: int) -> int:
        bits = 9 if function == 4 else 8
        whole, fraction = abs(value) >> bits, abs(value) & ((1 << bits) - 1)
        top = 0x7FFF << 10 if function == 4 else 0xFFFF << 8
        if whole < 255:
            left, right = int(SIGMOID_TABLE[whole]), int(SIGMOID_TABLE[whole + 1])
            top = (left << bits) + fraction * (right - left)
        if function == 4:
            return (top if value >= 0 else (1 << 25) - top - 1) + 512 >> 10
        return (top - (1 << 23) if value >= 0 else (1 << 23) - top - 1) + 128 >> 8

    def elementwise(self, y: int, x: int, c: int) -> int:
        registers, mode = self.registers, Elementwise(self.drawn.mode)
        first = self.upscaled(y, x, c)
        if mode is Elementwise.ABS:
            return self.scaled(abs(first))
        if mode is Elementwise.LRELU:
            return first if first >= 0 else self.scaled(first)
        if mode is Elementwise.CLZ:
            return 32 - (first & 0xFFFF_FFFF).bit_length()
        broadcast = registers[Short.IFM2_BROADCAST]
        if broadcast & 0x80:
            second = registers[Short.IFM2_SCALAR] - self.zero("IFM2")
        else:
            at = (0 if broadcast >> axis & 1 else index for axis, index in enumerate((y, x, c)))
            second = self.element("IFM2", *at)
        if broadcast & 0x40:
            first, second = second, first
        match mode:
            case Elementwise.MIN:
                return min(first, second)
            case Elementwise.MAX:
                return max(first, second)
            case Elementwise.SHR:
                return divide(first, second, self.mode)
            case Elementwise.SHL:
                return sign_extend(first << second, 32)
            case Elementwise.MUL:
                return self.rescaled(first * second)
        left, right = self.operands(first, second)
        total = left + right if mode is Elementwise.ADD else left - right
        return self.rescaled(total) if registers[Short.OFM_PRECISION] & 0x100 else total

    def rescaled(self, value: int) -> int:
        if self.drawn.types["IFM"] == "int32":
            return divide(value, self.registers.payload(Long.OFM_SCALE)[1] & 63, self.mode)
        return self.scaled(value)

    def operands(self, first: int, second: int) -> tuple[int, int]:
        """Return the scaled operands of ADD and SUB."""
        registers = self.registers
        factor, parameter = registers.payload(Long.OPA_SCALE)
        precision = registers[Short.IFM_PRECISION]
        scaling = precision >> 8 & 3
        if scaling == 0:
            return first * (factor & 0xFFFF), second * (registers.payload(Long.OPB_SCALE)[0] & 0xFFFF)
        headroom = 20 if np.dtype(self.drawn.types["IFM"]).itemsize == 1 else 15

        def scaled(value: int) -> int:
            return divide(value * factor, parameter & 63, precision >> 14, headroom)

        if scaling == 1:
            return scaled(first), second << headroom - 1
        return first << headroom - 1, scaled(second)

    def met(self, y: int, x: int, dilation: tuple[int, int] = (1, 1)) -> Iterator[tuple[int, int, int, int]]:
        """Yield the taps inside of the IFM with their places in it."""
        registers = self.registers
        word = registers[Short.KERNEL_STRIDE]
        stride_x, stride_y = 1 + (word & 1) + (word >> 6 & 1) * 2, 1 + (word >> 1 & 1) + (word >> 9 & 1) * 2
        rows, columns = registers[Short.KERNEL_HEIGHT_M1] + 1, registers[Short.KERNEL_WIDTH_M1] + 1
        top, left = registers[Short.IFM_PAD_TOP], registers[Short.IFM_PAD_LEFT]
        height = (self.height - 1) * stride_y + rows - top - registers[Short.IFM_PAD_BOTTOM]
        width = (self.width - 1) * stride_x + columns - left - registers[Short.IFM_PAD_RIGHT]
        for row in range(0, rows, dilation[0]):
            for column in range(0, columns, dilation[1]):
                at_y, at_x = y * stride_y - top + row, x * stride_x - left + column
                if 0 <= at_y < height and 0 <= at_x < width:
                    yield row // dilation[0], column // dilation[1], at_y, at_x

    def pool(self, y: int, x: int, c: int) -> int:
        mode = Pool(self.drawn.mode)
        if mode is Pool.REDUCE_SUM:
            return self.scaled(sum(self.upscaled(y, x, each) for each in range(self.registers[Short.IFM_DEPTH_M1] + 1)))
        values = [self.upscaled(at_y, at_x, c) for _, _, at_y, at_x in self.met(y, x)]
        if mode is Pool.MAX:
            return max(values, default=-(1 << 40))
        codes = (Short.IFM_PAD_TOP, Short.IFM_PAD_LEFT, Short.IFM_PAD_RIGHT, Short.IFM_PAD_BOTTOM)
        if not any(self.registers[code] for code in codes):
            return self.scaled(sum(values))
        total, count = sum(values), max(len(values), 1)
        magnitude = (abs(total) + count // 2) // count
        return magnitude if total >= 0 else -magnitude

    def convolution(self) -> Callable[[int, int, int], int]:
        registers, depthwise = self.registers, self.drawn.kind is Kind.DEPTHWISE
        word = registers[Short.KERNEL_STRIDE]
        dilation = 1 + (word >> 4 & 1), 1 + (word >> 3 & 1)
        channels = registers[Short.IFM_DEPTH_M1] + 1
        order = WeightOrder(
            ofm_depth=self.depth,
            ifm_depth=channels,
            kernel_height=registers[Short.KERNEL_HEIGHT_M1] // dilation[0] + 1,
            kernel_width=registers[Short.KERNEL_WIDTH_M1] // dilation[1] + 1,
            ofm_block_depth=registers[Short.OFM_BLK_DEPTH_M1] + 1,
            ofm_ublock_depth=U55.ofm_ublock_depth,
            ifm_ublock_depth=U55.ifm_ublock_depth,
            ifm_bits=16 if self.drawn.types["IFM"] == "int16" else 8,
            part_kernel=bool(word & 4),
            depthwise=depthwise,
            dilation_height=dilation[0],
            dilation_width=dilation[1],
        )
        assert self.drawn.weights is not None
        weights = arranged(self.drawn.weights, order)

        def compute(y: int, x: int, c: int) -> int:
            entry = self.regions[READ_ONLY][SCALES_AT + 10 * c :][:10].tobytes()
            total = int.from_bytes(entry[:5], "little", signed=True)
            for row, column, at_y, at_x in self.met(y, x, dilation):
                for channel in [c] if depthwise else range(channels):
                    weight = int(weights[c, row, column, 0 if depthwise else channel])
                    total += weight * self.upscaled(at_y, at_x, channel)
            if registers[Short.OFM_PRECISION] & 0x100:
                return self.scaled(total)
            return divide(total * int.from_bytes(entry[5:9], "little"), entry[9] & 63, self.mode)

        return compute
