# SPDX-License-Identifier: Apache-2.0
"""Kernels of recurrent layers that multiply rows: the plain C on the host, the assembler on emulated boards."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from lowered_call import lowering_of, run_lowered, run_overlapping
from merged import merged
from numpy.testing import assert_array_equal
from oracle import edge_inputs
from recurrent_case import recurrent_network, with_given_states

import ferrule
from ferrule import resources
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, core_features
from ferrule.backends.cpu_acc.lowering.table import rows_of
from ferrule.backends.firmware import LoweredOp
from ferrule.backends.target import CoreFeatures
from ferrule.graph import Array, DataType, LayerType, Shape
from ferrule.network import Network
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc

LSTM, SVDF = LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, LayerType.SVDF
CORES = [
    CoreFeatures(name="cortex-m0"),
    CoreFeatures(name="cortex-m4", dsp=True),
    CoreFeatures(name="cortex-m55", fpu=True, dsp=True, mve=True),
]
SHAPES = [
    {"batch": 2, "steps": 3, "inputs": 5, "units": 3},
    {"batch": 1, "steps": 2, "inputs": 16, "units": 1},
    {"batch": 1, "steps": 4, "inputs": 33, "units": 16, "rank": 2},
    {"batch": 2, "steps": 8, "inputs": 8, "units": 45},
]
NETWORKS = {
    f"{type_.lower()} {'x'.join(map(str, shape.values()))} {seed}": recurrent_network(
        type_,
        np.random.default_rng((seed, index)),
        **shape,  # type: ignore[arg-type]
    )
    for type_ in (LSTM, SVDF)
    for index, shape in enumerate(SHAPES)
    for seed in range(3)
} | {
    f"int16 lstm {'x'.join(map(str, shape.values()))} {seed}": recurrent_network(
        LSTM,
        np.random.default_rng((seed, index)),
        dtype=DataType.INT16,
        **shape,  # type: ignore[arg-type]
    )
    for index, shape in enumerate([*SHAPES, {"batch": 1, "steps": 3, "inputs": 16, "units": 24}])
    for seed in range(2)
}


def candidates(network: Network, core: CoreFeatures) -> Iterator[LoweredOp]:
    """Yield the layer lowered to each kernel that can run it on a core."""
    context = lowering_of(network, core)
    for row in rows_of(context)[1]:
        found = row.candidate(context) if row.needs <= core_features(core) else ""
        each = [found] if isinstance(found, Candidate) else [] if isinstance(found, str) else found
        yield from (candidate.lowered(context) for candidate in each)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_plain_c_is_exact(name: str) -> None:
    """The states, too, for random and extreme inputs."""
    network = with_given_states(NETWORKS[name])
    for inputs in (random_inputs(network), *edge_inputs(network).values()):
        wanted = network.run(inputs)
        for core in CORES:
            for op in candidates(network, core):
                for got, each in zip(run_lowered(network, inputs, core, op), wanted, strict=True):
                    assert_array_equal(got, each, err_msg=f"{core.name} {op.kernel}")


@pytest.mark.parametrize("name", NETWORKS)
def test_new_states_may_replace_the_old_ones(name: str) -> None:
    network = with_given_states(NETWORKS[name])
    inputs = random_inputs(network)
    wanted = dict(zip((info.name for info in network.outputs), network.run(inputs), strict=True))
    for core in CORES:
        for op in candidates(network, core):
            assert len(op.overlaps) == len(wanted) - 1
            for overlap in op.overlaps:
                for shift in (0, network.info(overlap.output).dtype.size_bytes):
                    got = run_overlapping(network, inputs, overlap, shift, op)
                    assert_array_equal(got, wanted[overlap.output], err_msg=f"{op.kernel} {overlap.output} {shift}")


BOARDS = {"stm32g0b1": "octet", "mps2-an386": "block", "mps3-an547": "mve"}


@pytest.mark.emu
@pytest.mark.parametrize("board", BOARDS)
def test_the_assembler_is_exact(board: str, qemu: str, arm_gcc: str) -> None:
    networks = list(NETWORKS.values())
    firmware = ferrule.compile(merged(networks), board=board, toolchain="arm-none-eabi-gcc", goal="speed")
    assert firmware.image.stack.size_bytes is not None, firmware.image.stack.reason
    kernels = Counter(layer.kernel for layer in firmware.artifact.operators)
    assert {kernel for kernel in kernels if BOARDS[board] in kernel}
    assert ("lstm_s16" in kernels) == (board == "stm32g0b1")
    inputs = [array for network in networks for array in random_inputs(network)]
    report = firmware.run(inputs, engine="qemu" if "an547" in board else "unicorn")
    for name, got, network in zip(NETWORKS, report.outputs, networks, strict=True):
        assert_array_equal(got, network.run(random_inputs(network))[0], err_msg=name)


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3", "-Os"])
@pytest.mark.parametrize("kernel", ["svdf_mve_s8", "svdf_mve_s16_state", "lstm_mve_s8"])
def test_vector_kernels_assemble_whatever_registers_are_chosen(kernel: str, level: str, arm_gcc: str) -> None:
    """Stores of lanes that become narrower take their address from r0 to r7 only."""
    sources = resources.root() / "src_c"
    command = [arm_gcc, "-mcpu=cortex-m55", "-mfloat-abi=hard", "-mthumb", "-std=c11", "-ffreestanding", level]
    includes = [f"-I{sources / 'kernels' / 'include'}", f"-I{resources.root() / 'include'}"]
    subprocess.run([*command, *includes, "-c", str(sources / "kernels" / f"{kernel}.c"), "-o", "/dev/null"], check=True)


def reasons(core: CoreFeatures, type_: LayerType = LSTM, **options: object) -> set[str]:
    """Return why kernels for a core cannot run a layer; empty if all can."""
    options = {"inputs": 4, "units": 9, **options}
    network = recurrent_network(type_, np.random.default_rng(5), **options)  # type: ignore[arg-type]
    context = lowering_of(network, core)
    found = [row.candidate(context) for row in rows_of(context)[1] if row.needs <= core_features(core)]
    return {each for each in found if isinstance(each, str)}


def lowest(shape: Shape) -> Array:
    return np.full(shape, -128, np.int8)


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.name)
def test_kernels_refuse_what_they_cannot_compute(core: CoreFeatures) -> None:
    wide = {"the data is not int16"} if core.dsp else set()
    assert reasons(core, dtype=DataType.INT16) == {"the data is not int8"}
    assert reasons(core) == wide
    assert not reasons(core, SVDF, weights=lowest)


def test_sums_of_int16_that_32_bits_may_not_hold_are_left_to_the_generic_kernel() -> None:
    found = reasons(CORES[1], dtype=DataType.INT16, weights=lambda shape: np.full(shape, 127, np.int8), inputs=300)
    assert found == {"the data is not int8", "a sum does not fit into 30 bits"}


def test_weights_that_cannot_be_paired_have_16_bits() -> None:
    sizes = []
    for weights in (None, lowest):
        network = recurrent_network(LSTM, np.random.default_rng(5), inputs=64, units=64, weights=weights)
        context = lowering_of(network, CORES[1])
        (found,) = [row.candidate(context) for row in rows_of(context)[1] if row.kernel == "lstm_block_s8"]
        assert not isinstance(found, str | Candidate)
        sizes.append(found[0].weight_bytes)
    assert 1.9 < sizes[1] / sizes[0] < 2
