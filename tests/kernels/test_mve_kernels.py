# SPDX-License-Identifier: Apache-2.0
"""The kernels with vector instructions (MVE): their plain C here, the assembler on an emulated Cortex-M55."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ckernels import NativeNetwork
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from layer_case import layer_network, tensor
from lowered_call import lower, run_overlapping
from merged import merged
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import edge_inputs

import ferrule
from ferrule._frozen import frozen
from ferrule.architectures import CORTEX_M
from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernels.mve import Way
from ferrule.backends.target import CoreFeatures, Goal
from ferrule.boards import load_board
from ferrule.dom import Identifier, Integer
from ferrule.firmware.toolchain import toolchain
from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import rounding_divide_by_pot, saturating_rounding_doubling_high_mul
from ferrule.operators.arithmetic.window import Padding, Window
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc

INCLUDES = (*KERNELS.include_paths, *CORTEX_M.startup.include_paths)
M55 = CoreFeatures(name="cortex-m55", fpu=True, dsp=True, mve=True)
ONE = Padding(top=1, bottom=1, left=1, right=1)
RANDOM = np.random.default_rng(14)


@frozen
class Case:
    """A layer, and the kernel that runs it on a core with MVE."""

    kernel: str
    network: Network


def weighted(
    kernel: str,
    type_: LayerType,
    descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor | FullyConnectedDescriptor,
    image: Shape,
    weights: Shape,
    *,
    zero_point: int = -128,
    dead: Sequence[int] = (),
    unused: Sequence[int] = (),
    bias: bool = True,
) -> Case:
    """Return a layer with a scale per channel; `dead` channels are always clamped, `unused` inputs have no weights."""
    axis = 3 if type_ is LayerType.DEPTHWISE_CONV_2D else 0
    channels = weights[axis]
    values = RANDOM.integers(-127, 128, weights).astype(np.int8)
    values[..., list(unused)] = 0
    scales = tuple(float(np.float32(2.0**-7 * 2.0 ** RANDOM.uniform(-3, 0))) for _ in range(channels))
    biases = RANDOM.integers(-3000, 3000, channels).astype(np.int32)
    biases[list(dead)] = -(1 << 29)
    quantization = Quantization(scales=scales, zero_points=(0,) * channels, axis=axis)
    products = Quantization(scales=tuple(2.0**-5 * scale for scale in scales), zero_points=(0,) * channels, axis=0)
    infos = [
        tensor("data", image, DataType.INT8, 2.0**-5, 4),
        TensorInfo("weights", weights, DataType.INT8, quantization=quantization),
    ]
    constants: dict[int, Array] = {1: values}
    if bias:
        infos.append(TensorInfo("bias", (channels,), DataType.INT32, quantization=products))
        constants[2] = biases
    size = int(np.prod(weights)) // channels
    output = Quantization.of(2.0**-5 * float(np.sqrt(size)) / 2, zero_point)
    return Case(kernel=kernel, network=layer_network(type_, descriptor, infos, output, constants))


def conv2d(image: Shape, weights: Shape, descriptor: Conv2dDescriptor | None = None, **options: object) -> Case:
    kernel = "conv2d_1x1_mve_s8" if descriptor is None else "conv2d_mve_s8"
    return weighted(kernel, LayerType.CONV_2D, descriptor or Conv2dDescriptor(), image, weights, **options)  # type: ignore[arg-type]


def depthwise(
    image: Shape, window: tuple[int, int], descriptor: DepthwiseConv2dDescriptor | None = None, **options: object
) -> Case:
    descriptor = descriptor or DepthwiseConv2dDescriptor(padding=ONE)
    weights = (1, *window, image[3] * descriptor.depth_multiplier)
    kernel = "depthwise_conv2d_mve_s8"
    return weighted(kernel, LayerType.DEPTHWISE_CONV_2D, descriptor, image, weights, **options)  # type: ignore[arg-type]


def planes(image: Shape, window: tuple[int, int], *, size: int = 0, **options: object) -> Case:
    """Return a layer for the kernel that goes channel by channel; `size` pixels of padding on each side."""
    padding = Padding(top=size, bottom=size, left=size, right=size)
    given = {name: options.pop(name) for name in list(options) if name not in {"zero_point", "dead"}}
    descriptor = DepthwiseConv2dDescriptor(padding=padding, **given)  # type: ignore[arg-type]
    return replace(depthwise(image, window, descriptor, **options), kernel="depthwise_conv2d_planes_mve_s8")


def dense(rows: int, inputs: int, channels: int, **options: object) -> Case:
    kernel = "fully_connected_mve_s8" if inputs % 16 == 0 else "fully_connected_copied_mve_s8"
    shapes = (rows, inputs), (channels, inputs)
    return weighted(kernel, LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), *shapes, **options)  # type: ignore[arg-type]


RELU = Conv2dDescriptor(activation=Activation.RELU)
STRIDES_2 = DepthwiseConv2dDescriptor(stride_h=2, stride_w=2, padding=ONE, activation=Activation.RELU)
CASES: dict[str, Case] = {
    "one channel": conv2d((1, 9, 9, 1), (16, 1, 1, 1)),
    "half a vector": conv2d((1, 5, 7, 8), (8, 1, 1, 8)),
    "channels not in fours": conv2d((1, 5, 3, 17), (13, 1, 1, 17)),
    "two pixels": conv2d((1, 1, 2, 33), (4, 1, 1, 33), zero_point=3),
    "two passes": conv2d((1, 3, 3, 144), (8, 1, 1, 144)),
    "three images": conv2d((3, 3, 3, 16), (12, 1, 1, 16), zero_point=-5),
    "dead channels": conv2d((1, 5, 3, 16), (12, 1, 1, 16), dead=(0, 5, 6)),
    "listed inputs": conv2d((1, 5, 3, 64), (8, 1, 1, 64), unused=range(3, 40), zero_point=1, dead=(7,)),
    "3x3": conv2d((1, 5, 9, 16), (8, 3, 3, 16), Conv2dDescriptor(padding=ONE)),
    "3x3 with a limit": conv2d((1, 4, 4, 3), (5, 3, 3, 3), Conv2dDescriptor(padding=ONE, activation=Activation.RELU6)),
    "3x3 of many channels": conv2d((1, 3, 3, 33), (4, 3, 3, 33), Conv2dDescriptor(padding=ONE), zero_point=0),
    "10x4 of one channel": conv2d(
        (1, 13, 6, 1),
        (8, 10, 4, 1),
        Conv2dDescriptor(stride_h=2, stride_w=2, padding=Padding(top=4, bottom=5, left=1, right=1)),
    ),
    "stride above the window": conv2d((2, 7, 7, 21), (16, 1, 1, 21), Conv2dDescriptor(stride_h=2, stride_w=3)),
    "dilated": conv2d((1, 7, 9, 4), (16, 2, 3, 4), Conv2dDescriptor(dilation_h=3, dilation_w=2, padding=ONE)),
    "dilated, columns shared": conv2d(
        (2, 4, 31, 12),
        (8, 2, 4, 12),
        Conv2dDescriptor(dilation_h=2, dilation_w=3, padding=Padding(left=4, right=5)),
        dead=(1,),
    ),
    "dilated, columns shared by strides": conv2d(
        (1, 3, 37, 16), (8, 1, 3, 16), Conv2dDescriptor(stride_w=2, dilation_w=4, padding=Padding(left=3)), zero_point=1
    ),
    "one row": conv2d((1, 3, 6, 8), (8, 3, 3, 8), Conv2dDescriptor(padding=Padding(left=1, right=1)), dead=(2,)),
    "outside": conv2d((1, 2, 2, 4), (16, 3, 1, 4), Conv2dDescriptor(padding=Padding(top=3, bottom=3, left=2))),
    "without bias": conv2d((1, 4, 4, 4), (16, 2, 2, 4), RELU, bias=False),
    "depthwise": depthwise((1, 5, 6, 16), (3, 3)),
    "depthwise, two pixels at once": depthwise((1, 3, 12, 8), (3, 3), DepthwiseConv2dDescriptor(), zero_point=2),
    "depthwise, four pixels at once": depthwise((1, 3, 19, 4), (3, 3), DepthwiseConv2dDescriptor()),
    "depthwise, channels not in sixteens": depthwise((2, 5, 5, 36), (3, 3), dead=(2, 17)),
    "depthwise, channels not in fours": depthwise((1, 7, 9, 31), (3, 3), dead=(30,), zero_point=9),
    "depthwise, channels not in fours, plain": depthwise((2, 7, 9, 17), (3, 3), STRIDES_2),
    "depthwise, channels not in fours, several pixels at once": depthwise((1, 3, 19, 27), (2, 3)),
    "depthwise, channels not in fours, listed": depthwise((1, 5, 13, 33), (3, 4), STRIDES_2),
    "depthwise, lanes that fill vectors": depthwise((1, 4, 18, 24), (3, 3)),
    "depthwise, stride 2": depthwise(
        (1, 7, 9, 16), (3, 3), replace(STRIDES_2, activation=Activation.NONE), zero_point=-100
    ),
    "depthwise, dilated": depthwise(
        (1, 7, 9, 12), (2, 3), DepthwiseConv2dDescriptor(dilation_h=3, dilation_w=2, activation=Activation.RELU6)
    ),
    "depthwise, one row": depthwise((1, 3, 6, 20), (3, 3), DepthwiseConv2dDescriptor(padding=Padding(left=1))),
    "depthwise, outside": depthwise((1, 2, 2, 28), (1, 5), DepthwiseConv2dDescriptor(padding=Padding(left=5, right=6))),
    "depthwise, listed": depthwise((1, 1, 21, 40), (1, 21), DepthwiseConv2dDescriptor()),
    "depthwise, listed, several steps": depthwise((1, 6, 7, 48), (5, 5), DepthwiseConv2dDescriptor(), zero_point=7),
    "depthwise, listed, two pixels at once": depthwise((6, 5, 6, 8), (5, 5), DepthwiseConv2dDescriptor(), dead=(3,)),
    "depthwise, listed, outside": depthwise((2, 2, 3, 36), (3, 4), DepthwiseConv2dDescriptor(padding=ONE)),
    "planes": planes((1, 9, 17, 5), (3, 3), size=1),
    "planes, two vectors": planes((2, 6, 13, 4), (5, 5), size=2, zero_point=3),
    "planes, three vectors": planes((1, 9, 12, 3), (7, 6), size=3, dead=(1,)),
    "planes, four vectors": planes((1, 8, 9, 3), (8, 8), size=4, activation=Activation.RELU6),
    "planes, strides": planes((1, 17, 19, 6), (5, 3), size=1, stride_h=2, stride_w=3),
    "planes, stride above the window": planes((1, 13, 20, 5), (2, 1), stride_h=3, stride_w=2, zero_point=-9),
    "planes, dilated": planes((1, 11, 14, 2), (3, 5), size=3, dilation_h=2, dilation_w=3),
    "multiplied, as groups": replace(
        planes((1, 8, 10, 3), (3, 3), size=1, depth_multiplier=3, zero_point=11), kernel="conv2d_mve_s8"
    ),
    "planes, by columns": planes((1, 29, 3, 2), (9, 1), dilation_h=2),
    "planes, one row": planes((3, 1, 30, 2), (1, 12), activation=Activation.RELU),
    "planes, windows outside": planes((1, 3, 9, 7), (2, 2), size=4, zero_point=-1),
    "dense": dense(1, 64, 24),
    "dense, last block not whole": dense(1, 80, 9, zero_point=7),
    "dense, four channels": dense(1, 144, 4, zero_point=7),
    "dense, last block of two": dense(1, 64, 10),
    "dense, last block of five": dense(1, 100, 13),
    "dense, ragged": dense(1, 10, 17),
    "dense, small": dense(1, 3, 8),
}


def arrays(networks: Sequence[Network], which: int) -> list[Array]:
    """Return inputs of the merged networks: random for 0, extreme for others."""
    chosen = [[random_inputs(network), *edge_inputs(network).values()][which] for network in networks]
    return [array for some in chosen for array in some]


def test_the_plain_c_is_exact() -> None:
    networks = [case.network for case in CASES.values()]
    native = NativeNetwork(merged(networks), core=M55, goal=Goal.SPEED)
    assert sorted(native.kernels) == sorted(case.kernel for case in CASES.values())
    for which in range(4):
        inputs = arrays(networks, which)
        for name, got, wanted in zip(CASES, native.run(inputs), native.network.run(inputs), strict=True):
            assert_array_equal(got, wanted, err_msg=name)


@pytest.mark.emu
def test_the_assembler_is_exact(qemu: str, arm_gcc: str) -> None:
    network = merged([case.network for case in CASES.values()])
    firmware = ferrule.compile(network, board="mps3-an547", toolchain="arm-none-eabi-gcc", goal="speed")
    assert firmware.image.stack.size_bytes is not None, firmware.image.stack.reason
    inputs = arrays([case.network for case in CASES.values()], 0)
    report = firmware.run(inputs, engine="qemu")
    assert sorted(layer.kernel for layer in report.document.layers) == sorted(case.kernel for case in CASES.values())
    for name, got, wanted in zip(CASES, report.outputs, network.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=name)


FORMS = "plain", "general", "listed", "any_plain", "any_general", "any_listed"
ASSEMBLED = {
    "mve_store_pairs": ["ferrule_mve_store_pairs"],
    "mve_store_s16": ["ferrule_mve_store_pairs_s16", "ferrule_mve_sum_wide_s16"],
    "mve_depthwise_s16": ["ferrule_mve_depthwise_s16", "ferrule_mve_depthwise_multiplied_s16"],
    "mve_depthwise": [f"ferrule_mve_depthwise_{form}" for form in FORMS],
    "mve_plane": [f"ferrule_mve_plane_{form}_{vectors}" for form in ("plain", "general") for vectors in range(1, 5)],
    "fully_connected_mve_s8": ["ferrule_mve_multiply_row", "ferrule_mve_row_sums", "ferrule_mve_row_sums_s16"],
    "batch_matmul_block_s16": ["multiply_row"],
    "lstm_mve_s8": ["logistic_gate", "tanh_gate", "advance_cells", "advance_cells_s16"],
}
"""The functions that are all assembler, by source."""


@pytest.mark.parametrize("source", ASSEMBLED)
def test_both_compilers_assemble_the_same(arm_gcc: str, source: str, tmp_path: Path) -> None:
    """Assemblers have differed in vector instructions: GNU as 2.40 encodes VQSHRNB as VQRSHRNB."""
    require_module("ziglang", "pip install ferrule[run]")
    board = load_board("mps3-an547")
    (path,) = KERNELS.part(source).source_paths
    code = []
    for name in ("zig", "arm-none-eabi-gcc"):
        each = toolchain(name)
        output = tmp_path / f"{name}.o"
        flags = [*each.compile_flags(board, "O2"), *(f"-I{folder}" for folder in INCLUDES)]
        subprocess.run([*each.require(), *flags, "-c", str(path), "-o", str(output)], check=True, timeout=60)
        code.append([function_bytes(output, function).hex(" ", 4) for function in ASSEMBLED[source]])
    assert min(len(each) for each in code[0]) > 100
    assert code[0] == code[1]


def function_bytes(path: Path, name: str) -> bytes:
    """Return the machine code of a function in an object file."""
    with path.open("rb") as stream:
        file = ELFFile(stream)
        table = file.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        (symbol,) = table.get_symbol_by_name(name) or ()
        start = symbol["st_value"] & ~1
        data: bytes = file.get_section(symbol["st_shndx"]).data()[start : start + symbol["st_size"]]
        return data


def vrshl(value: Array, shift: int) -> Array:
    """Shift int32 lanes to the right by 0 to 31, rounding halves up, as VRSHL does by a negative shift."""
    return (value + (1 << shift >> 1)) >> shift


@pytest.mark.parametrize("shift", [0, 1, 2, 7, 15, 22, 30, 31])
def test_vectors_round_as_the_reference(shift: int) -> None:
    """Values near halves and the ends of the range; values of 16 bits in full."""
    step = max(1 << shift >> 1, 1 << 18) + (1 << shift)  # from halves to wholes and back
    middles = np.array(range(-(1 << 31), 1 << 31, step), np.int64)
    near = np.clip((middles[:, None] + np.arange(-2, 3)).ravel(), -(1 << 31), (1 << 31) - 1)
    values = np.concatenate([near, np.arange(-(1 << 15), 1 << 15)])
    wanted = rounding_divide_by_pot(values, shift)
    plain = vrshl(values, shift)
    assert np.array_equal(np.maximum(plain, 0), np.maximum(wanted, 0))
    if shift > 0:
        assert np.array_equal(vrshl(values + (values >> 31), shift), wanted)


def test_the_doubling_high_product_is_the_reference() -> None:
    """VQRDMULH is round(2 * a * b / 2**32), halves up."""
    a = np.concatenate([RANDOM.integers(-(1 << 31), 1 << 31, 100_000), np.arange(-300, 300)])
    b = np.concatenate([RANDOM.integers(0, 1 << 31, 100_000), np.full(600, 1 << 30)])
    assert np.array_equal((2 * a * b + (1 << 31)) >> 32, saturating_rounding_doubling_high_mul(a, b))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (depthwise((1, 12, 9, 4), (10, 3)), "channels are multiplied, or the window has more than 9 rows"),
        (planes((1, 19, 9, 4), (13, 5)), "the window has more than 64 pixels"),
        (planes((1, 9, 9, 4), (3, 3), stride_h=2, dilation_h=2), "the windows are dilated and have strides"),
        (planes((1, 1, 3, 4097), (1, 2), dilation_w=2), "the pixels are too far apart"),
    ],
)
def test_depthwise_kernels_state_why_they_cannot(case: Case, reason: str) -> None:
    assert reason in {each.reason for each in lower(case.network, M55).considered}


@pytest.mark.parametrize(
    ("dilation", "stride", "width", "wanted"),
    [
        (1, 1, 9, [(1, 1)]),
        (1, 4, 9, [(1, 0)]),  # the window has 3 columns
        (4, 1, 5, [(1, 0), (4, 1)]),
        (4, 1, 4, [(1, 0)]),  # each turn would have one pixel
        (4, 2, 9, [(1, 0), (2, 1)]),
        (3, 2, 9, [(1, 0), (3, 2)]),
        (2, 2, 9, [(1, 1)]),
        (2, 5, 9, [(1, 0)]),  # 5 columns of scratch from a window to the next one
    ],
)
def test_windows_that_share_columns(dilation: int, stride: int, width: int, wanted: list[tuple[int, int]]) -> None:
    window = Window(height=1, width=3, stride_h=1, stride_w=stride, dilation_w=dilation)
    ways = Way.all(window, 16, 16, width)
    assert [(way.apart, way.advance) for way in ways] == wanted
    for way in ways:
        assert sum(way.sizes(width, 2)) == width


@pytest.mark.parametrize(
    ("case", "apart"), [("dilated", 1), ("dilated, columns shared", 3), ("dilated, columns shared by strides", 2)]
)
def test_dilated_windows_are_collected_where_they_share_columns(case: str, apart: int) -> None:
    (table,) = (each for each in lower(CASES[case].network, M55, Goal.SPEED).declarations if "params" in each.name)
    assert f"Field(value={Integer(value=apart)}, name='apart')" in repr(table)


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("depthwise, stride 2", (1, "general", "general")),
        ("depthwise, two pixels at once", (2, "general", "general")),
        ("depthwise, four pixels at once", (4, "plain", "plain")),
        ("depthwise, channels not in fours, plain", (1, "any_plain", "any_plain")),
        ("depthwise, channels not in fours, several pixels at once", (4, "plain", "any_plain")),
        ("depthwise, channels not in fours, listed", (1, "any_listed", "any_listed")),
        ("depthwise, lanes that fill vectors", (4, "plain", "plain")),
    ],
)
def test_depthwise_pixels_are_computed_together_where_lanes_are_saved(case: str, wanted: tuple[int, str, str]) -> None:
    (table,) = (each for each in lower(CASES[case].network, M55, Goal.SPEED).declarations if "params" in each.name)
    together, compute, single = wanted
    for name, value in {
        "together": Integer(value=together),
        "compute": Identifier(f"ferrule_mve_depthwise_{compute}"),
        "single": Identifier(f"ferrule_mve_depthwise_{single}"),
    }.items():
        assert f"Field(value={value}, name='{name}')" in repr(table)


def test_outputs_may_overlap_inputs_at_the_least_distance() -> None:
    """The plain C reads and writes in the order of the assembler."""
    stated = 0
    for name, case in CASES.items():
        inputs = random_inputs(case.network)
        (wanted,) = case.network.run(inputs)
        op = lower(case.network, M55, Goal.SPEED)
        for overlap in op.overlaps:
            assert overlap.distance_bytes is not None
            got = run_overlapping(case.network, inputs, overlap, overlap.distance_bytes, op)
            assert_array_equal(got, wanted, err_msg=name)
            stated += 1
    without = ("dense", "planes, dilated", "planes, by columns", "planes, strides")
    assert stated == sum(not name.startswith(without) for name in CASES)
