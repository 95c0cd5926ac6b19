# SPDX-License-Identifier: Apache-2.0
"""Tests of the firmware face: one executor calls the folder's C and the portable kernels, on an emulated board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ferrule
from ferrule.backends import BackendId, BackendRegistry, Device
from ferrule.graph import DataType, Quantization, TensorInfo

MY_CUSTOM = BackendId("MyCustom")

pytestmark = [pytest.mark.cc, pytest.mark.emu]


def network(dtype: DataType) -> ferrule.Network:
    quantization = None if dtype.is_float else Quantization.of(0.05, 3)
    made = ferrule.Network("sums")
    for name in "abc":
        made.add_input(TensorInfo(name=name, shape=(3, 5), dtype=dtype, quantization=quantization))
    weights = TensorInfo(name="weights", shape=(3, 5), dtype=dtype, quantization=quantization)
    constant = made.add_constant(weights, np.arange(15).reshape(3, 5).astype(dtype.numpy))
    total = made.add_add_layer("a", "b", quantization=quantization, name="ab")
    total = made.add_add_layer(total, "c", quantization=quantization, name="abc")
    total = made.add_tanh_layer(total, name="tanh")
    total = made.add_add_layer(total, constant, quantization=quantization, name="weighted")
    total = made.add_add_layer(total, "a", quantization=quantization, name="last")
    made.set_outputs([total])
    return made


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FLOAT32])
def test_one_executor_calls_two_backends(dtype: DataType, registry: BackendRegistry, tmp_path: Path) -> None:
    firmware = ferrule.compile(
        network(dtype),
        backends=["MyCustom", "CpuAcc"],
        devices=[Device(name="adder0", backend=MY_CUSTOM)],
        registry=registry,
        out=tmp_path / "project",
    )
    report = firmware.run()
    exact = (ferrule.Verdict.EXACT, ferrule.Verdict.WITHIN_BOUND)[: 1 + dtype.is_float]
    assert report.verdict in exact
    suffix = "f32" if dtype.is_float else "s8"
    assert [(layer.type, f"{layer.backend}/{layer.device}", layer.kernel) for layer in report.layers] == [
        ("PRE_COMPILED", "MyCustom/adder0", f"program_{suffix}"),
        ("TANH", "CpuAcc/CpuAcc", report.layers[1].kernel),
        ("ADD", "MyCustom/adder0", f"add_{suffix}"),
        ("PRE_COMPILED", "MyCustom/adder0", f"program_{suffix}"),
    ]
    project = tmp_path / "project"
    assert (project / "lib" / "backends" / "my_custom" / "src_c" / f"add_{suffix}.c").is_file()
    executor = (project / "model" / "ferrule_sums.c").read_text(encoding="utf-8")
    assert executor.count(f"my_custom_add_{suffix}(&") == 4


def test_extreme_values_are_equal_on_the_board(registry: BackendRegistry) -> None:
    made = network(DataType.INT8)
    values = np.random.default_rng(3).choice(np.array([-128, -127, -1, 0, 1, 126, 127], np.int8), (24, 5))
    inputs = {name: np.roll(values, shift, axis=1) for shift, name in enumerate("abc")}
    report = ferrule.compile(made, backends=["MyCustom", "CpuAcc"], registry=registry).run(inputs)
    assert len(report.samples) == 8
    assert report.verdict is ferrule.Verdict.EXACT
