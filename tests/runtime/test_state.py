# SPDX-License-Identifier: Apache-2.0
"""Loaded networks with state: each instance keeps its own, on every backend, until a run fails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compare import assert_arrays_equal
from gpu_face import require_opencl
from host_library import library
from mock_backends import Slow, assigned, registry_of
from state_networks import NETWORKS, running_sum, stream

from ferrule.backends.cpu_ref import CpuRef
from ferrule.errors import FerruleError, InputError
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

OPTIONS = pytest.mark.parametrize(
    "options",
    [OptimizerOptions(), OptimizerOptions(import_enabled=True, export_enabled=True)],
    ids=["copied", "imported"],
)
X = np.array([[2, 3]], np.float32)


def inputs_of(network: Network, seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.integers(-9, 9, info.shape).astype(np.float32) for info in network.inputs]


@OPTIONS
@pytest.mark.parametrize(
    "backends", [("CpuRef",), ("CpuAcc",), ("GpuAcc", "CpuRef"), ("CpuAcc", "GpuAcc")], ids="-".join
)
def test_runs_carry_the_state_as_numpy_does(backends: Sequence[str], options: OptimizerOptions) -> None:
    if "GpuAcc" in backends:
        require_opencl()
    if "CpuAcc" in backends:
        library()
    with Runtime() as runtime:
        for network in (make() for make in NETWORKS):
            hints = {layer.name: backends[n % len(backends)] for n, layer in enumerate(network.layers)}
            wanted = OptimizerOptions(
                import_enabled=options.import_enabled, export_enabled=options.export_enabled, hints=hints
            )
            divided = optimize(network, [*dict.fromkeys((*backends, "CpuRef"))], runtime.registry, wanted)
            number = runtime.load_network(divided)
            for _ in range(2):
                state = network.initial_state()
                for step in range(4):
                    inputs = inputs_of(network, step)
                    found = runtime.enqueue_workload(number, inputs)
                    assert_arrays_equal(found, network.run(inputs, state=state))
                runtime.reset_state(number)


@OPTIONS
def test_instances_do_not_share_their_state(options: OptimizerOptions) -> None:
    with Runtime(registry=registry_of(CpuRef)) as runtime:
        one, other = (runtime.load_network(assigned(running_sum(), {}, CpuRef, options)) for _ in range(2))
        found = [runtime.enqueue_workload(number, [X])[0].tolist() for number in (one, one, other, one)]
        assert found == [[[3, 2]], [[5, 5]], [[3, 2]], [[7, 8]]]


@OPTIONS
def test_samples_go_on_with_the_sequence_or_begin_anew(options: OptimizerOptions) -> None:
    with Runtime(registry=registry_of(CpuRef)) as runtime:
        number = runtime.load_network(assigned(running_sum(), {}, CpuRef, options))
        runtime.enqueue_workload(number, [X])
        assert runtime.enqueue_workload(number, [np.concatenate([X, X])])[0].tolist() == [[5, 5], [7, 8]]
        anew = runtime.enqueue_workload(number, [np.concatenate([X, X])], reset_each=True)
        assert anew[0].tolist() == [[3, 2], [3, 2]]
        second = runtime.enqueue_workload(number, [np.concatenate([X, X])], reset_each=[False, True])
        assert second[0].tolist() == [[5, 5], [3, 2]]
        assert runtime.enqueue_workload(number, [X])[0].tolist() == [[5, 5]]


@OPTIONS
def test_a_failed_run_leaves_the_state_invalid_until_a_reset(options: OptimizerOptions) -> None:
    """The failure is that of an asynchronous backend, which is seen at the end of the run."""
    network = running_sum()
    with Runtime(registry=registry_of(Slow)) as runtime:
        number = runtime.load_network(assigned(network, {}, Slow, options))
        runtime.enqueue_workload(number, [X])
        with pytest.raises(InputError):
            runtime.enqueue_workload(number, [X, X])
        assert runtime.enqueue_workload(number, [X])[0].tolist() == [[5, 5]]  # a refused call changes nothing
    broken = type("Broken", (Slow,), {"failure": RuntimeError("broken")})
    with Runtime(registry=registry_of(broken)) as runtime:
        number = runtime.load_network(assigned(network, {}, broken, options))
        with pytest.raises(FerruleError, match="broken"):
            runtime.enqueue_workload(number, [X])
        with pytest.raises(FerruleError, match="state of network 'running sum' is not valid") as caught:
            runtime.enqueue_workload(number, [X])
        assert caught.value.hint == "begin a new sequence of runs: runtime.reset_state(network)"
        runtime.reset_state(number)
        with pytest.raises(FerruleError, match="broken"):
            runtime.enqueue_workload(number, [X])


def test_an_unloaded_network_is_not_reset() -> None:
    with Runtime(registry=registry_of(CpuRef)) as runtime:
        number = runtime.load_network(assigned(stream(), {}, CpuRef))
        runtime.unload_network(number)
        with pytest.raises(FerruleError, match="no loaded network"):
            runtime.reset_state(number)
