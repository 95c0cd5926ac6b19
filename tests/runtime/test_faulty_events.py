# SPDX-License-Identifier: Apache-2.0
"""An asynchronous backend whose events misbehave, where tensors cross in fallback memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, NoReturn

import pytest
from mock_backends import chain, registry_of, sample
from numpy.testing import assert_array_equal

from ferrule._typing import override
from ferrule.backends import Backend, BackendId
from ferrule.backends.context import CreationOptions
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.allocators import DmaBufAllocator, MallocAllocator
from ferrule.backends.tensor_handle import Event, MemoryManager
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.graph import LayerType
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.fallback import CountingAllocator, shared_memory
from ferrule.testing.backends.partners import LateQueue, PartnerCpu, PartnerGpu, PartnerNpu, PartnerWorkloads

OPTIONS = OptimizerOptions(simplify=False, import_enabled=True, export_enabled=True)


class Honest:
    """The completion of work of a queue."""

    def __init__(self, inner: Event, workload: Workload) -> None:
        self.inner = inner
        self.workload = workload
        self.waits = 0

    def wait(self) -> None:
        self.waits += 1
        self.inner.wait()

    def done(self) -> bool:
        return self.inner.done()


class NeverSignals(Honest):
    """It returns from `wait`, and is never done."""

    @override
    def wait(self) -> None:
        pass


class SignalsTwice(Honest):
    """A later wait does the work again."""

    @override
    def wait(self) -> None:
        super().wait()
        if self.waits > 1:
            self.workload.execute()


class RaisesOnce(Honest):
    """Its first wait fails, and later ones do not."""

    @override
    def wait(self) -> None:
        super().wait()
        if self.waits == 1:
            raise OSError("the queue is lost")


class RaisesInDone(Honest):
    @override
    def done(self) -> NoReturn:
        raise OSError("no such event")


class Queued:
    """A workload of a queue, with an event of the kind that the backend has now."""

    def __init__(self, workload: Workload, queue: LateQueue) -> None:
        self._workload = workload
        self._queue = queue

    def execute(self) -> Event:
        return Faulty.event(self._queue.start(self._workload), self._workload)


class QueuedWorkloads(PartnerWorkloads):
    def __init__(self) -> None:
        super().__init__()
        self._queue = LateQueue(lambda: None)

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        return Queued(super().create_workload(info), self._queue)


class Faulty(PartnerGpu):
    id: ClassVar[BackendId] = BackendId("Faulty")
    event: ClassVar[type[Honest]] = Honest

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return QueuedWorkloads()


BACKENDS: tuple[type[Backend], ...] = (Faulty, PartnerCpu, PartnerNpu)
ROADS: list[tuple[type[Backend], ...]] = [
    (Faulty, PartnerCpu, Faulty),
    (PartnerNpu, Faulty, Faulty, PartnerNpu),
    (PartnerCpu, Faulty),
]


class Setup:
    def __init__(self) -> None:
        self.allocators = [CountingAllocator(MallocAllocator()), CountingAllocator(DmaBufAllocator())]
        self.runtime = Runtime(CreationOptions(fallback_allocators=self.allocators), registry_of(*BACKENDS))

    @property
    def held(self) -> list[int]:
        return [allocator.held for allocator in self.allocators]

    def check(self, number: int, length: int, seed: int) -> None:
        (found,) = self.runtime.enqueue_workload(number, [sample(seed)])
        assert_array_equal(found, chain(length).run([sample(seed)])[0])


@pytest.fixture
def setup() -> Iterator[Setup]:
    before = shared_memory()
    made = Setup()
    with made.runtime:
        yield made
    assert (made.held, shared_memory()) == ([0, 0], before)


def divided(owners: Sequence[type[Backend]]) -> OptimizedNetwork:
    network = chain(len(owners))
    hints = {layer.name: str(owner.id) for layer, owner in zip(network.layers, owners, strict=True)}
    optimized = optimize(network, ["PartnerCpu"], registry_of(*BACKENDS), replace(OPTIONS, hints=hints))
    assert LayerType.FALLBACK_IMPORT in {layer.type for layer in optimized.graph.layers}
    return optimized


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (NeverSignals, r"returned False from done\(\) of the event of execute\(\) after wait\(\), expected True"),
        (RaisesOnce, r"failed in (wait\(\) of the event of )?execute\(\): OSError: the queue is lost"),
        (RaisesInDone, r"failed in done\(\) of the event of execute\(\): OSError: no such event"),
    ],
)
@pytest.mark.parametrize("owners", ROADS, ids=len)
def test_the_error_names_the_layer_and_nothing_is_lost(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, owners: Sequence[type[Backend]], event: type[Honest], found: str
) -> None:
    optimized = divided(owners)
    number = setup.runtime.load_network(optimized)
    held, shared = setup.held, shared_memory()
    layer = f"layer{owners.index(Faulty)}"
    with monkeypatch.context() as patch:
        patch.setattr(Faulty, "event", event)
        for _ in range(2):  # the first run leaves a second one possible
            with pytest.raises(BrokenBackendError, match=rf"^layer '(\[ )?{layer}\b.*backend 'Faulty' {found}"):
                setup.runtime.enqueue_workload(number, [sample()])
        assert (setup.held, shared_memory()) == (held, shared)
    setup.check(number, len(owners), 1)
    setup.runtime.unload_network(number)
    assert setup.held == [0, 0]
    setup.check(setup.runtime.load_network(optimized), len(owners), 2)


@pytest.mark.parametrize("owners", ROADS, ids=len)
def test_work_that_is_done_twice_changes_nothing(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, owners: Sequence[type[Backend]]
) -> None:
    """The workload of a FALLBACK_IMPORT layer waits for an event, and so does the end of the run."""
    made: list[Honest] = []

    def event(inner: Event, workload: Workload) -> Honest:
        made.append(SignalsTwice(inner, workload))
        return made[-1]

    number = setup.runtime.load_network(divided(owners))
    monkeypatch.setattr(Faulty, "event", staticmethod(event))
    for seed in range(3):
        setup.check(number, len(owners), seed)
    assert {each.waits for each in made} <= {1, 2}
    assert len(made) == 3 * owners.count(Faulty)
