# SPDX-License-Identifier: Apache-2.0
"""Divided networks in the runtime: real handles, copies, imports and asynchronous workloads preserve every bit."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_backends import Slow, mock, registry_of

from ferrule.backends.cpu_ref import CpuRef
from ferrule.network.execution import check_inputs
from ferrule.operators.interpreter import execute
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.random_networks import random_network

BACKENDS = (CpuRef, mock("Other"), mock("Fast"), type("Later", (Slow,), {"delay_s": 0.0001}))


@settings(max_examples=40)
@given(st.integers(0, 100_000))
def test_a_network_divided_at_random_runs_as_a_whole_one(seed: int) -> None:
    dice = random.Random(seed)
    network = random_network(seed, 8)
    ids = [kind.id for kind in BACKENDS]
    dice.shuffle(ids)
    options = OptimizerOptions(
        simplify=dice.random() < 0.5,
        import_enabled=dice.random() < 0.5,
        export_enabled=dice.random() < 0.5,
        debug=dice.random() < 0.2,
        hints={layer.name: dice.choice(ids) for layer in network.layers},
    )
    generator = np.random.default_rng(seed)
    inputs = [generator.integers(-100, 100, info.shape).astype(info.dtype.numpy) for info in network.inputs]
    wanted = execute(network, check_inputs(network, inputs))
    with Runtime(registry=registry_of(*BACKENDS)) as runtime:
        number = runtime.load_network(optimize(network, ids, runtime.registry, options))
        for _ in range(2):
            for got, expected in zip(runtime.enqueue_workload(number, inputs), wanted, strict=True):
                assert got.dtype == expected.dtype
                assert got.tobytes() == expected.tobytes()
