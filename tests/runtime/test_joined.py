# SPDX-License-Identifier: Apache-2.0
"""Workloads of consecutive layers that a backend joins into one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from mock_backends import Mock, assigned, chain, mock, registry_of, sample

from ferrule._typing import override
from ferrule.backends.context import CreationOptions
from ferrule.backends.cpu_ref.workloads import CpuRefWorkloadFactory
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.tensor_handle import MemoryManager
from ferrule.backends.workload import Workload, WorkloadFactory
from ferrule.graph import Array
from ferrule.runtime import Runtime


class Joined:
    """Executes several workloads."""

    def __init__(self, workloads: Sequence[Workload], runs: list[int]) -> None:
        self.workloads = workloads
        self.runs = runs

    def execute(self) -> None:
        self.runs.append(len(self.workloads))
        for workload in self.workloads:
            workload.execute()


class Joining(CpuRefWorkloadFactory):
    """CpuRef's workloads, joined."""

    runs: list[int]

    @override
    def join(self, workloads: Sequence[Workload]) -> Workload:
        return Joined(workloads, self.runs)


@pytest.fixture
def runs() -> list[int]:
    """The lengths of the joined workloads, in the order in which they ran."""
    return []


def backend(name: str, runs: list[int]) -> type[Mock]:
    def factory(self: Mock, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        del self, memory, options
        made = Joining()
        made.runs = runs
        return made

    return mock(name, workload_factory=factory)


def outputs(kinds: Sequence[type[Mock]], hints: dict[str, type[Mock]], *, profiling: bool = False) -> list[Array]:
    with Runtime(CreationOptions(profiling=profiling), registry_of(*kinds)) as runtime:
        number = runtime.load_network(assigned(chain(), hints, kinds[0]))
        return runtime.enqueue_workload(number, [sample()])


@pytest.mark.parametrize(("elsewhere", "expected"), [((), [4]), (("layer2",), [2])])
def test_neighbours_of_one_backend_are_joined(runs: list[int], elsewhere: tuple[str, ...], expected: list[int]) -> None:
    one, other = backend("One", runs), mock("Other")
    assert outputs([one, other], dict.fromkeys(elsewhere, other))[0].tolist() == chain().run([sample()])[0].tolist()
    assert runs == expected


def test_profiles_have_each_layer(runs: list[int]) -> None:
    outputs([backend("One", runs)], {}, profiling=True)
    assert runs == []
