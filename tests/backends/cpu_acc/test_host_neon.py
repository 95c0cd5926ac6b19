# SPDX-License-Identifier: Apache-2.0
"""The NEON kernels, run as generated C on an emulated processor, so that this host needs no NEON."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from children import ran
from covering import EXHAUSTIVE
from host_cases import WEIGHTED, halfway_sums, pools, ruled
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from layer_case import layer_network
from merged import merged
from needs import require_module, require_program
from numpy.testing import assert_array_equal
from weighted_cases import within_bound

from ferrule.backends import BackendId, contribution
from ferrule.backends.cpu_acc.backend import CpuAccTarget
from ferrule.backends.cpu_acc.host.instruction_set import SETS
from ferrule.backends.cpu_acc.host.library import HOST
from ferrule.backends.cpu_acc.host.lowering.call import POOL, Host
from ferrule.backends.cpu_acc.host.lowering.table import HOST_LOWERINGS
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.target import Face, default_target
from ferrule.codegen import Artifact, Plan, generate
from ferrule.dom import Call, Evaluate, Null
from ferrule.graph import Array, DataType, Graph, LayerType, Quantization, Rounding, TensorInfo
from ferrule.network import Network, run_graph
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.weighted.products import WEIGHTED_RULES
from ferrule.testing.backends.comparison import random_inputs

pytestmark = [pytest.mark.cc, pytest.mark.emu]
(NEON,) = (item for item in SETS if item.name == "neon")
FLAGS = ("-std=c11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


class NeonTarget:
    """Lowers to a NEON kernel where there is one, and otherwise to the portable kernel."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the lowered call, with a null pointer for the thread pool."""
        lowering = HOST_LOWERINGS.get(context.layer.type)
        op = None if lowering is None else lowering(context, Host(instructions=NEON, threads=1))
        if op is None:
            return CpuAccTarget().lower(context)
        (statement,) = op.statements
        assert isinstance(statement, Evaluate)
        assert isinstance(statement.expression, Call)
        call = statement.expression
        arguments = tuple(Null() if argument == POOL else argument for argument in call.arguments)
        return replace(op, statements=(Evaluate(replace(call, arguments=arguments)),))


def program(artifact: Artifact, network: Network) -> str:
    """Return a C program whose main reads all inputs and writes all outputs."""
    prefix = f"ferrule_{artifact.symbol}"
    lines = ["#include <stdio.h>", f'#include "{prefix}.h"', "int main(void) {"]
    for index, info in enumerate(network.inputs):
        place = f"((void **)&{prefix}_default_inputs)[{index}]"
        lines.append(f"if (fread({place}, 1, {info.size_bytes}, stdin) != {info.size_bytes}) return 2;")
    arguments = ", ".join(f"&{prefix}_default_{part}" for part in ("inputs", "outputs", "memory"))
    lines.append(f"if ({prefix}_run({arguments}, NULL) != 0) return 3;")
    for index, info in enumerate(network.outputs):
        lines.append(f"(void)fwrite(((void **)&{prefix}_default_outputs)[{index}], 1, {info.size_bytes}, stdout);")
    return "\n".join([*lines, "return 0; }"])


def run_emulated(network: Network, inputs: list[Array], folder: Path) -> tuple[list[Array], list[str]]:
    """Return the outputs, and the kernels that computed them."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    emulator = require_program("qemu-aarch64", "apt-get install qemu-user")
    names = [layer.name for layer in network.layers]
    artifact = generate(
        Plan(
            graph=network,
            firmware=dict.fromkeys(names, NeonTarget()),
            targets=dict.fromkeys(names, default_target(BackendId("Neon"), Face.FIRMWARE)),
            workspace_bytes=1 << 30,
        )
    )
    parts = contribution.merged((*artifact.contributions, contribution.KERNELS.part(), HOST))
    includes = (folder, *(path for part in parts for path in part.include_paths))
    sources = [str(folder / "main.c"), *(str(path) for part in parts for path in part.source_paths)]
    for file, text in artifact.files.items():
        (folder / file).write_text(text, encoding="utf-8")
        if file.endswith(".c") and not file.endswith("_link.c"):
            sources.append(str(folder / file))
    (folder / "main.c").write_text(program(artifact, network), encoding="utf-8")
    executable = str(folder / "network")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", "-static", *FLAGS]
    command += [*(f"-I{path}" for path in includes), "-o", executable, *sources]
    done = ran(command)
    assert done.returncode == 0, done.stderr
    data = b"".join(array.tobytes() for array in inputs)
    content = subprocess.run([emulator, executable], input=data, capture_output=True, check=True).stdout
    outputs = []
    for info in network.outputs:
        array = np.frombuffer(content[: info.size_bytes], info.dtype.numpy)
        outputs.append(array.reshape(info.shape))
        content = content[info.size_bytes :]
    assert not content
    return outputs, [record.kernel for record in artifact.operators]


def sums(type_: LayerType) -> Network:
    """Return a sum with more elements than a vector holds."""
    infos = [
        TensorInfo(name, (1, 203), DataType.INT8, quantization=Quantization.of(scale, 7))
        for name, scale in (("a", 0.0312), ("b", 0.0547))
    ]
    return layer_network(type_, BinaryDescriptor(), infos, Quantization.of(0.0731, -5))


@pytest.mark.parametrize("source", HOST.source_paths, ids=lambda path: path.name)
def test_the_sources_compile_for_aarch64(tmp_path: Path, source: Path) -> None:
    """Without a warning; `make nightly` runs them, too."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    includes = (*contribution.KERNELS.include_paths, *HOST.include_paths, *contribution.HEADERS.include_paths)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", *FLAGS, "-O0", "-c"]
    command += [*(f"-I{path}" for path in includes), "-o", str(tmp_path / "object.o"), str(source)]
    done = ran(command)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly
@settings(max_examples=4 if EXHAUSTIVE else 2, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(data=st.data())
def test_neon_kernels_are_the_numpy_ones(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    types = (DataType.INT8, DataType.INT8, DataType.FLOAT32)
    networks: list[Graph] = [data.draw(family(dtype)).network for family in WEIGHTED.values() for dtype in types * 2]
    for family, rule in product(WEIGHTED.values(), (Rounding.SINGLE, Rounding.ONNX)):
        networks.append(ruled(data.draw(family(DataType.INT8)).network, rule))
    networks += [data.draw(pools(kind)) for kind in ("average", "max")]
    networks += [sums(LayerType.ADD), sums(LayerType.SUB), *(ruled(halfway_sums(), rule) for rule in WEIGHTED_RULES)]
    inputs = [random_inputs(network, seed) for seed, network in enumerate(networks)]
    outputs, kernels = run_emulated(
        merged(networks), [array for arrays in inputs for array in arrays], tmp_path_factory.mktemp("neon")
    )
    assert sum(kernel.endswith("_neon") for kernel in kernels) > len(kernels) / 2
    for network, given_inputs, got in zip(networks, inputs, outputs, strict=True):
        (wanted,) = run_graph(network, given_inputs)
        if wanted.dtype == np.float32:
            assert within_bound(network, given_inputs, got)
        else:
            assert_array_equal(got, wanted, strict=True)
