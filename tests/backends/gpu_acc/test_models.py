# SPDX-License-Identifier: Apache-2.0
"""Trained models on GpuAcc, alone and together with CpuRef."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from compare import assert_arrays_equal
from gpu_face import require_opencl

from ferrule import formats
from ferrule.backends.context import CreationOptions
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs

NAMES = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")


@pytest.fixture(autouse=True)
def _opencl() -> None:
    require_opencl()


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("shared", [False, True], ids=["copied", "imported"])
@pytest.mark.parametrize("name", NAMES)
def test_models_equal_the_reference(models: Path, name: str, *, mixed: bool, shared: bool) -> None:
    network = formats.load(models / f"{name}.tflite")
    dice = random.Random(7)
    hints = {layer.name: dice.choice(["GpuAcc", "CpuRef"]) for layer in network.layers} if mixed else {}
    options = OptimizerOptions(hints=hints, import_enabled=shared, export_enabled=shared, simplify=not mixed)
    with Runtime() as runtime:
        optimized = optimize(network, ["GpuAcc", "CpuRef"], runtime.registry, options)
        backends = {str(assignment.backend) for assignment in optimized.assignment.values()}
        assert backends == ({"GpuAcc", "CpuRef"} if mixed else {"GpuAcc"})
        loaded = runtime.load_network(optimized)
        for seed in range(2):
            inputs = random_inputs(network, seed)
            assert_arrays_equal(runtime.enqueue_workload(loaded, inputs), network.run(inputs))


def test_profiles_have_the_kernels(models: Path) -> None:
    network = formats.load(models / "ad01_int8.tflite")
    with Runtime(CreationOptions(profiling=True)) as runtime:
        loaded = runtime.load_network(optimize(network, ["GpuAcc"], runtime.registry))
        runtime.enqueue_workload(loaded, random_inputs(network, 1))
        assert "conv2d_s8" in str(runtime.profiler(loaded).to_json())
