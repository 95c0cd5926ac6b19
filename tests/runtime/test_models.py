# SPDX-License-Identifier: Apache-2.0
"""Trained models on the shipped backends: alone, in preference lists, and divided at random over devices."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from covering import covering
from gpu_face import require_opencl
from host_library import library
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule import formats
from ferrule.backends.device import BackendId, Device
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.network.bounds import outside, run_bounded
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc
INTEGER = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
FLOAT = ("ad01_fp32", "pretrainedResnet", "vww_96_float")
"""The eighth model, kws_ref_model_float32, is hybrid, which the reader refuses."""
LISTS = (("CpuRef",), ("CpuAcc",), ("GpuAcc", "CpuRef"), ("GpuAcc", "CpuAcc", "CpuRef"), ("CpuAcc", "GpuAcc", "CpuRef"))
DEVICES = tuple(
    Device(name=name, backend=BackendId(backend))
    for name, backend in (
        *(("ref0", "CpuRef"), ("ref1", "CpuRef")),
        *(("core0", "CpuAcc"), ("core1", "CpuAcc"), ("gpu0", "GpuAcc")),
    )
)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime() as made:
        yield made


@cache
def load(path: Path) -> Network:
    return formats.load(path)


@cache
def expected(path: Path, seed: int) -> tuple[list[Array], list[Bounded]]:
    """Return random inputs, and the outputs of the numpy kernels with their bounds."""
    inputs = random_inputs(load(path), seed)
    return inputs, run_bounded(load(path), inputs)


def need(backends: Sequence[str]) -> None:
    """Skip the test if a backend cannot be used here."""
    if "GpuAcc" in backends:
        require_opencl()
    if "CpuAcc" in backends:
        library()


def check(runtime: Runtime, path: Path, optimized: OptimizedNetwork, seeds: Sequence[int] = (0, 1)) -> None:
    """Compare outputs with the reference: integers exactly, floats within the bound of each element."""
    number = runtime.load_network(optimized)
    try:
        for seed in seeds:
            inputs, wanted = expected(path, seed)
            for got, other in zip(runtime.enqueue_workload(number, inputs), wanted, strict=True):
                assert (got.shape, got.dtype) == (other.values.shape, other.values.dtype)
                assert not outside(got, other).any()
    finally:
        runtime.unload_network(number)


@covering(
    "name, preferences, shared",
    (*INTEGER, *FLOAT),
    LISTS,
    (False, True),
    seed=6,
    sentinel=("ad01_int8", LISTS[3], True),
)
def test_models_keep_their_outputs(
    models: Path, runtime: Runtime, name: str, preferences: Sequence[str], *, shared: bool
) -> None:
    need(preferences)
    path = models / f"{name}.tflite"
    options = OptimizerOptions(import_enabled=shared, export_enabled=shared)
    optimized = optimize(load(path), preferences, runtime.registry, options)
    if name in INTEGER or preferences[0] != "GpuAcc":  # GpuAcc supports int8 only
        assert optimized.backends == preferences[:1]
    check(runtime, path, optimized)


@pytest.mark.parametrize("name", INTEGER)
@settings(max_examples=12)
@given(seed=st.integers(0, 1_000_000))
def test_models_divided_by_lot_keep_every_bit(models: Path, runtime: Runtime, name: str, seed: int) -> None:
    need(("CpuAcc", "GpuAcc"))
    path = models / f"{name}.tflite"
    dice = random.Random(seed)
    shared = dice.random() < 0.5
    hints = {}
    for layer in load(path).layers:
        device = dice.choice(DEVICES)
        hints[layer.name] = f"{device.backend}/{device.name}"
    options = OptimizerOptions(
        hints=hints, devices=DEVICES, import_enabled=shared, export_enabled=shared, simplify=False
    )
    optimized = optimize(load(path), ["CpuRef"], runtime.registry, options)
    for layer, hint in hints.items():
        if layer in optimized.assignment:
            assert f"{optimized.assignment[layer].backend}/{optimized.assignment[layer].device}" == hint
    check(runtime, path, optimized)
