# SPDX-License-Identifier: Apache-2.0
"""BATCH_MATMUL with a matrix packed at run time: the plain C of all kernels here, the assembler on boards."""

from __future__ import annotations

import numpy as np
import pytest
from layer_case import layer_network
from lowered_call import lower, lowering_of, run_lowered
from merged import merged, sample_outputs
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate
from ferrule.backends.cpu_acc.lowering.table import ROWS
from ferrule.backends.target import CoreFeatures
from ferrule.graph import Array, DataType, LayerType, Quantization, Rounding, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs

M0, M3, M4 = (
    CoreFeatures(name="cortex-m0plus", dsp=False),
    CoreFeatures(name="cortex-m3", dsp=False),
    None,
)
M4_DSP = CoreFeatures(name="cortex-m4", fpu=True, dsp=True)
M55 = CoreFeatures(name="cortex-m55", fpu=True, dsp=True, mve=True)


def product(
    sizes: tuple[int, int, int],
    *,
    adjoint: str = "",
    batches: tuple[Shape, Shape] = ((), ()),
    zero_points: tuple[int, int, int] = (3, -5, 7),
    rounding: Rounding = Rounding.TFLM,
    factor: float = 1.0,
    held: int | None = None,
    least: int = -128,
    dtype: DataType = DataType.INT8,
) -> Network:
    """Return [rows, depth] times [depth, columns]; `adjoint` names the transposed inputs, `held` is a constant."""
    rows, depth, columns = sizes
    descriptor = BatchMatmulDescriptor(adj_x="x" in adjoint, adj_y="y" in adjoint)
    ends = (
        (depth, rows) if descriptor.adj_x else (rows, depth),
        (columns, depth) if descriptor.adj_y else (depth, columns),
    )
    infos = [
        TensorInfo(
            f"in{i}",
            (*batches[i], *ends[i]),
            dtype,
            quantization=None if dtype.is_float else Quantization.of(2.0**-5, zero_points[i]),
        )
        for i in range(2)
    ]
    if dtype.is_float:
        return layer_network(LayerType.BATCH_MATMUL, descriptor, infos)
    constants: dict[int, Array] = {}
    if held is not None:
        constants[held] = np.random.default_rng(held).integers(least, 128, infos[held].shape).astype(dtype.numpy)
        constants[held][..., 0, 0] = least
    reach = 70 if dtype is DataType.INT8 else 30_000
    output = Quantization.of(float(np.float32(2.0**-10 * reach * depth**0.5 * factor)), zero_points[2])
    return layer_network(LayerType.BATCH_MATMUL, descriptor, infos, output, constants, rounding=rounding)


def layer(
    rows: int,
    depth: int,
    columns: int,
    *,
    type_: LayerType = LayerType.FULLY_CONNECTED,
    weights_zero_point: int = 0,
    bias: bool = True,
    loose_bias: bool = False,
    held: bool = False,
    activation: Activation = Activation.NONE,
    zero_point: int = 3,
    rounding: Rounding = Rounding.TFLM,
) -> Network:
    """Return a FULLY_CONNECTED or a CONV_2D of one pixel with weights from run time, or `held` ones."""
    fully = type_ is LayerType.FULLY_CONNECTED
    descriptor = (FullyConnectedDescriptor if fully else Conv2dDescriptor)(activation=activation)
    data, weights = ((rows, depth), (columns, depth)) if fully else ((1, 1, rows, depth), (columns, 1, 1, depth))
    infos = [
        TensorInfo("data", data, DataType.INT8, quantization=Quantization.of(2.0**-5, -4)),
        TensorInfo("weights", weights, DataType.INT8, quantization=Quantization.of(2.0**-5, weights_zero_point)),
    ]
    random, constants = np.random.default_rng(columns), dict[int, Array]()
    if held:
        constants[1] = random.integers(-127, 128, weights, np.int8)
    if bias:
        infos.append(TensorInfo("bias", (columns,), DataType.INT32, quantization=Quantization.of(2.0**-10)))
        constants |= {} if loose_bias else {2: random.integers(-9000, 9000, columns).astype(np.int32)}
    output = Quantization.of(2.0**-10 * 90 * depth**0.5, zero_point)
    return layer_network(type_, descriptor, infos, output, constants, rounding=rounding)


def drawn(seed: int, *, wide: bool = False) -> Network:
    """Return a product of random sizes, batches and zero points by a random rule, or of int16, which has neither."""
    random = np.random.default_rng(seed)
    sizes = (int(random.integers(1, 12)), int(random.integers(1, 40)), int(random.integers(1, 20)))
    extents = tuple(int(each) for each in random.integers(1, 4, random.integers(0, 4)))
    narrow = tuple(int(random.choice([1, each])) for each in extents)[int(random.integers(0, len(extents) + 1)) :]
    batches = (extents, narrow) if random.random() < 0.5 else (narrow, extents)
    low, middle, high = (int(random.choice([-128, 127, 0, int(random.integers(-128, 128))])) for _ in range(3))
    return product(
        sizes,
        adjoint=str(random.choice(["", "x", "y", "xy"])),
        batches=batches,
        zero_points=(0, 0, 0) if wide else (low, middle, high),
        rounding=Rounding.TFLM
        if wide
        else [Rounding.TFLM, Rounding.TFLM, Rounding.SINGLE, Rounding.ONNX][int(random.integers(4))],
        factor=float(2.0 ** random.uniform(-3, 2)),
        held=[None, None, 0, 1][int(random.integers(4))],
        dtype=DataType.INT16 if wide else DataType.INT8,
    )


CASES = {
    "scores": product((6, 16, 8), adjoint="y", batches=((2,), (2,))),
    "scores, odd rows": product((5, 16, 8), adjoint="y", batches=((2,), (2,)), zero_points=(9, -128, -128)),
    "scores, more rows than at once": product((67, 16, 12), adjoint="x", zero_points=(9, 0, 4)),
    "values": product((5, 33, 7), batches=((2,), (2,)), zero_points=(-128, 0, -128)),
    "one column": product((5, 9, 1), zero_points=(0, 0, -128)),
    "one row": product((1, 20, 17), zero_points=(127, -128, 0)),
    "one row of one product": product((1, 1, 4), adjoint="x"),
    "both transposed": product((7, 18, 6), adjoint="xy"),
    "a matrix for all": product((3, 16, 5), batches=((2, 3), (1, 1)), held=1),
    "a left matrix for all": product((3, 8, 12), batches=((1, 3), (2, 3)), held=0),
    "single": product((4, 24, 9), rounding=Rounding.SINGLE),
    "onnx": product((4, 24, 9), rounding=Rounding.ONNX, zero_points=(5, 0, -100)),
    "int16": product((3, 16, 4), adjoint="y", dtype=DataType.INT16, zero_points=(0, 0, 0)),
    "int16 across": product((2, 7, 5), batches=((2,), (2,)), dtype=DataType.INT16, zero_points=(0, 0, 0)),
    "int16, both transposed": product((4, 9, 3), adjoint="xy", dtype=DataType.INT16, zero_points=(0, 0, 0)),
    "int16, left transposed": product((4, 6, 1), adjoint="x", dtype=DataType.INT16, zero_points=(0, 0, 0), held=1),
    "scaled up": product((4, 4, 4), factor=0.005),
    "long": product((3, 600, 9), zero_points=(0, 0, 0)),
    "rows from run time": layer(7, 24, 9),
    "a row from run time": layer(1, 40, 13, activation=Activation.RELU6, zero_point=-128),
    "pixels from run time": layer(5, 16, 8, type_=LayerType.CONV_2D, bias=False, zero_point=-128),
    "pixels by onnx": layer(4, 11, 6, type_=LayerType.CONV_2D, rounding=Rounding.ONNX),
    "weights with a zero point": layer(4, 18, 5, weights_zero_point=-9, held=True),
    "pixels and a zero point": layer(3, 16, 16, type_=LayerType.CONV_2D, weights_zero_point=100, held=True),
    "int16, one row": product((1, 12, 9), dtype=DataType.INT16, zero_points=(0, 0, 0)),
    "int16, long": product((2, 300, 6), adjoint="y", dtype=DataType.INT16, zero_points=(0, 0, 0)),
    "int16, scaled far down": product((3, 40, 9), dtype=DataType.INT16, zero_points=(0, 0, 0), factor=300.0),
    "int16, scaled little": product((3, 5, 8), dtype=DataType.INT16, zero_points=(0, 0, 0), factor=2.0**-11),
    "int16, scaled up": product((3, 5, 8), dtype=DataType.INT16, zero_points=(0, 0, 0), factor=2.0**-14),
}
CASES |= {f"drawn {seed}": drawn(seed) for seed in range(24)}
CASES |= {f"int16, drawn {seed}": drawn(seed, wide=True) for seed in range(24, 36)}


def runs_of(network: Network) -> list[list[Array]]:
    return [random_inputs(network), *edge_inputs(network).values()]


def candidates(network: Network, core: CoreFeatures | None = M4) -> list[Candidate]:
    """Return the kernels for a layer on any core, each with less and more scratch."""
    context, found = lowering_of(network, core), list[Candidate]()
    for row in ROWS[context.layer.type](context):
        each = row.candidate(context) if context.layer.rounding in row.rules else ""
        found += [each] if isinstance(each, Candidate) else [] if isinstance(each, str) else each
    # generic kernels of other layers have tables that point to tensors
    return [each for each in found if "batch_matmul" in each.kernel]


@pytest.mark.cc
@pytest.mark.parametrize("case", CASES)
def test_the_plain_c_of_each_kernel_is_the_reference(case: str) -> None:
    network = CASES[case]
    wanted = [network.run(inputs)[0] for inputs in runs_of(network)]
    for each in candidates(network):
        op = each.lowered(lowering_of(network, M4))
        for inputs, result in zip(runs_of(network), wanted, strict=True):
            assert_array_equal(run_lowered(network, inputs, op=op)[0], result, err_msg=each.kernel)


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("board", "toolchain"),
    [
        ("mps2-an386", "zig"),
        ("stm32g0b1", "zig"),
        *(
            pytest.param(board, toolchain, marks=pytest.mark.nightly)
            for board in ("mps2-an385", "mps2-an386", "mps3-an547")
            for toolchain in ("zig", "arm-none-eabi-gcc")
        ),
    ],
)
def test_the_assembler(board: str, toolchain: str) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    import ferrule

    network = merged(list(CASES.values()))
    built = ferrule.compile(network, board=board, toolchain=toolchain)
    samples = list(runs_of(network))
    results = sample_outputs(built, samples, "qemu" if board == "mps3-an547" else "unicorn")
    for inputs, outputs in zip(samples, results, strict=True):
        for case, got, wanted in zip(CASES, outputs, network.run(inputs), strict=True):
            assert_array_equal(got, wanted, err_msg=case)


@pytest.mark.parametrize(
    ("core", "rounding", "kernel"),
    [
        (M0, Rounding.TFLM, "batch_matmul_octet_s8"),
        (M3, Rounding.ONNX, "batch_matmul_octet_s8"),
        (M4, Rounding.TFLM, "batch_matmul_block_s8"),
        (M4, Rounding.SINGLE, "batch_matmul_block_s8"),
        (M55, Rounding.TFLM, "batch_matmul_mve_s8"),
        (M55, Rounding.ONNX, "batch_matmul_block_s8"),
    ],
)
def test_each_core_has_a_kernel(core: CoreFeatures | None, rounding: Rounding, kernel: str) -> None:
    assert lower(product((16, 16, 16), rounding=rounding), core).kernel == kernel


CONSTANT = (0, 0, 5)
"""Zero points with a constant right matrix that has the form of weights."""


@pytest.mark.cc
@pytest.mark.parametrize(
    ("network", "kernel"),
    [
        (product((6, 9, 4), held=1, least=-127, zero_points=CONSTANT, factor=0.77), "conv2d"),
        (product((1, 12, 5), adjoint="y", held=1, least=-127, zero_points=CONSTANT, factor=1.3), "fully_connected"),
        (product((2, 8, 3), batches=((3,), (1,)), held=1, least=-127, zero_points=CONSTANT), "conv2d"),
        (product((6, 9, 4), held=1, least=-127, zero_points=CONSTANT, rounding=Rounding.ONNX), "conv2d"),
        (product((6, 9, 4), held=1, zero_points=CONSTANT), "batch_matmul"),
        (product((6, 9, 4), held=1, least=-127, zero_points=(0, 1, 5)), "batch_matmul"),
        (product((6, 9, 4), adjoint="x", held=1, least=-127, zero_points=CONSTANT), "batch_matmul"),
        (product((6, 9, 4), batches=((2,), (2,)), held=1, least=-127, zero_points=CONSTANT), "batch_matmul"),
        (product((6, 9, 4), held=0, least=-127, zero_points=CONSTANT), "batch_matmul"),
    ],
)
def test_a_constant_matrix_has_the_kernels_of_weights(network: Network, kernel: str) -> None:
    op = lower(network, M4)
    assert op.kernel.startswith(kernel)
    for inputs in runs_of(network):
        assert_array_equal(run_lowered(network, inputs, op=op)[0], network.run(inputs)[0])


def test_a_bias_from_run_time_is_left_to_the_generic_kernel() -> None:
    network = layer(4, 18, 5, loose_bias=True)
    assert lower(network).kernel == "conv2d_s8"


@pytest.mark.parametrize(
    ("core", "sizes", "kernel"),
    [
        (M4_DSP, (16, 16, 16), "batch_matmul_block_s16"),
        (M4_DSP, (64, 64, 1), "batch_matmul_block_s16"),
        (M4_DSP, (2, 64, 64), "batch_matmul_block_s16"),
        (M4_DSP, (1, 64, 64), "batch_matmul_s16"),  # packing for one row costs more than it saves
        (M55, (16, 16, 16), "batch_matmul_block_s16"),
        (M55, (64, 64, 1), "batch_matmul_block_s16"),
    ],
)
def test_int16_has_a_kernel_with_sums_of_64_bits(core: CoreFeatures, sizes: tuple[int, int, int], kernel: str) -> None:
    assert lower(product(sizes, dtype=DataType.INT16, zero_points=(0, 0, 0)), core).kernel == kernel


SHAPES = [
    (sizes, adjoint)
    for sizes in ((64, 64, 1), (1, 64, 64), (8, 64, 8), (16, 32, 5), (4, 128, 2), (32, 8, 32))
    for adjoint in ("", "y")
]


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("goal", ["speed", "memory"])
@pytest.mark.parametrize("toolchain", ["zig", pytest.param("arm-none-eabi-gcc", marks=pytest.mark.slow)])
def test_the_estimates_of_int16_products_are_near_their_instructions(goal: str, toolchain: str) -> None:
    """The generic kernel costs by two columns, and whether products are adjacent; the other one by blocks of four."""
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    import ferrule

    networks = [
        product(sizes, adjoint=adjoint, dtype=DataType.INT16, zero_points=(0, 0, 0)) for sizes, adjoint in SHAPES
    ]
    built = ferrule.compile(merged(networks), board="mps2-an386", toolchain=toolchain, goal=goal)
    works = {record.layer: record.works[0] for record in built.artifact.operators}
    for layer, shape in zip(built.run(engine="unicorn").layers, SHAPES, strict=True):
        work = works[layer.name]
        assert work.instructions == pytest.approx(layer.count, rel=0.25), (shape, work.kernel)
    assert {work.kernel for work in works.values()} >= {"batch_matmul_s16"}


FLOATS = {
    "scores": product((6, 16, 8), adjoint="y", batches=((2,), (2,)), dtype=DataType.FLOAT32),
    "values": product((5, 33, 7), batches=((2,), (2,)), dtype=DataType.FLOAT32),
    "one column": product((5, 9, 1), dtype=DataType.FLOAT32),
    "one row": product((1, 20, 17), adjoint="x", dtype=DataType.FLOAT32),
    "both transposed": product((7, 18, 12), adjoint="xy", dtype=DataType.FLOAT32),
    "a matrix for all": product((3, 16, 5), batches=((2, 3), (1, 1)), dtype=DataType.FLOAT32),
}
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, -1e-41, 1e-30, 3e38, -3e38], np.float32)


@pytest.mark.cc
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("case", FLOATS)
def test_float_products_in_blocks_have_the_bits_of_a_loop(case: str, special: bool) -> None:
    network, random = FLOATS[case], np.random.default_rng(3)
    inputs = [array.astype(np.float32) for array in random_inputs(network)]
    if special:
        inputs = [
            np.where(random.random(each.shape) < 0.1, random.choice(SPECIAL, each.shape), each) for each in inputs
        ]
    found = {each.kernel: each for each in candidates(network, M4_DSP)}
    loop, blocks = (
        run_lowered(network, inputs, op=found[kernel].lowered(lowering_of(network, M4_DSP)))[0]
        for kernel in ("batch_matmul_f32", "batch_matmul_block_f32")
    )
    assert_array_equal(blocks, loop)
    assert_array_equal(np.signbit(blocks[blocks == 0]), np.signbit(loop[loop == 0]))


def test_float_products_are_in_blocks_on_cores_with_an_fpu() -> None:
    network = FLOATS["scores"]
    assert [lower(network, core).kernel for core in (M3, M4_DSP)] == ["batch_matmul_f32", "batch_matmul_block_f32"]


def test_what_is_scaled_up_is_left_to_the_generic_kernel() -> None:
    assert lower(CASES["scaled up"]).kernel == "batch_matmul_s8"
    assert lower(CASES["int16, scaled up"], M4_DSP).kernel == "batch_matmul_s16"


@pytest.mark.parametrize("kernel", ["mve", "block", "octet"])
def test_scratch_is_bounded_by_tiles(kernel: str) -> None:
    found = [each for each in candidates(product((16, 64, 200), adjoint="y")) if kernel in each.kernel]
    assert max(each.scratch_bytes for each in found) > 12_000
    assert min(each.scratch_bytes for each in found) < 1200
