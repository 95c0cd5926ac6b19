# SPDX-License-Identifier: Apache-2.0
"""Backends with one defect each, and the test family that finds it."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from mock_backends import SlowFactory

from ferrule.backends.backend import Support
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.cpu_ref.workloads import CpuRefWorkloadFactory
from ferrule.backends.device import BackendId
from ferrule.backends.optimization_views import OptimizationViews
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.host_memory import HostMemoryManager, HostTensorHandle, HostTensorHandleFactory, address
from ferrule.backends.tensor_handle import FactoryId, MemoryRef, MemorySource
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, DataType, LayerType, SubgraphView, TensorInfo
from ferrule.testing.backends import (
    BackendFamily,
    ContextFamily,
    EndToEndFamily,
    HandleFamily,
    LayerSupportFamily,
    MemoryFamily,
    ObjectFamily,
    RuntimeFamily,
    SubgraphFamily,
    Subject,
    WorkloadFamily,
)
from ferrule.testing.backends.memory import _Counting as Counting

FACTORY = FactoryId("Broken/Factory")
COUNTER = itertools.count()
ONE_MANAGER = HostMemoryManager()


class Spoiled:
    """Runs another workload, and then changes the arrays of its inputs and outputs."""

    def __init__(self, inner: Workload, info: WorkloadInfo, spoil: Callable[[list[Array], list[Array]], None]) -> None:
        self._inner = inner
        self._info = info
        self._spoil = spoil

    def execute(self) -> None:
        self._inner.execute()
        inputs = [handle.map() for handle in self._info.inputs if handle is not None]
        self._spoil(inputs, [handle.map() for handle in self._info.outputs])


class SpoilingFactory(WorkloadFactory):
    def __init__(self, spoil: Callable[[list[Array], list[Array]], None]) -> None:
        self._spoil = spoil

    def create_workload(self, info: WorkloadInfo) -> Workload:
        return Spoiled(CpuRefWorkloadFactory().create_workload(info), info, self._spoil)


class RefusingFactory(WorkloadFactory):
    def create_workload(self, info: WorkloadInfo) -> Workload:
        raise UnsupportedError("not today")


class MortalFactory(CpuRefWorkloadFactory):
    """A factory that fails once its backend object is gone."""

    def __init__(self, backend: CpuRef) -> None:
        self._backend = weakref.ref(backend)

    def create_workload(self, info: WorkloadInfo) -> Workload:
        def check(inputs: list[Array], outputs: list[Array]) -> None:
            if self._backend() is None:
                raise RuntimeError("the backend is gone")

        return Spoiled(super().create_workload(info), info, check)


class Answers:
    def __init__(self, supports: Callable[..., Support]) -> None:
        self.supports = supports


class Forgetful(HostTensorHandle):
    def unmap(self) -> None:
        self.memory()[...] = 0


class Greedy(HostTensorHandle):
    def can_import(self, memory: MemoryRef) -> bool:
        return True


class Stubborn(HostTensorHandle):
    def can_import(self, memory: MemoryRef) -> bool:
        return False


class OneForAll(HostTensorHandle):
    """A handle class whose tensors all start at the same byte."""

    _bytes = np.zeros(100_000, np.uint8)

    def memory(self) -> Array:
        if self._imported is not None:
            return self._imported
        return self._bytes[: self.info.size_bytes].view(self.info.dtype.numpy).reshape(self.info.shape)


class Leaking(HostMemoryManager):
    def release(self) -> None:
        self._custom = None
        super().release()


def handles(kind: type[HostTensorHandle]) -> dict[str, object]:
    class Factory(HostTensorHandleFactory):
        def create_handle(self, info: TensorInfo, *, managed: bool) -> HostTensorHandle:
            return kind(info, managed=managed, manager=self._manager)

    def factories(self: CpuRef, memory: object) -> tuple[Factory, ...]:
        return (Factory(FACTORY, memory),)

    return {"tensor_handle_factories": factories}


def without_imports(self: CpuRef, memory: object) -> tuple[HostTensorHandleFactory, ...]:
    return (HostTensorHandleFactory(FACTORY, memory, import_flags=MemorySource.UNDEFINED),)


def spoiling(spoil: Callable[[list[Array], list[Array]], None]) -> dict[str, object]:
    return {"workload_factory": lambda self, memory, options: SpoilingFactory(spoil)}


def supporting(supports: Callable[..., Support]) -> dict[str, object]:
    return {"layer_support": lambda self: Answers(supports)}


def viewing(views: Callable[[SubgraphView], OptimizationViews]) -> dict[str, object]:
    return {"optimize_subgraph": lambda self, view, target: views(view)}


def add_one(inputs: list[Array], outputs: list[Array]) -> None:
    for array in outputs:
        if array.dtype == np.int8:
            array.reshape(-1)[-1:] ^= 1


def stretch(inputs: list[Array], outputs: list[Array]) -> None:
    for array in outputs:
        if array.dtype == np.float32:
            np.multiply(array, np.float32(1.0001), out=array)


def scribble(inputs: list[Array], outputs: list[Array]) -> None:
    for array in inputs:
        array[...] = 1


def poke(array: Array, offset: int) -> None:
    """Change one byte, counted from the array's first, if it is inside the memory that the array is a part of."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    place = address(array) + offset - address(root)
    if 0 <= place < root.nbytes:
        root.reshape(-1).view(np.uint8)[place] ^= 0xFF


def overrun(inputs: list[Array], outputs: list[Array]) -> None:
    for array in outputs:
        poke(array, array.nbytes)


def underrun(inputs: list[Array], outputs: list[Array]) -> None:
    for array in inputs:
        poke(array, -1)


def overrun_far(inputs: list[Array], outputs: list[Array]) -> None:
    for array in outputs:
        for distance in range(64):
            poke(array, array.nbytes + distance)


class SpoilingWeights(CpuRefWorkloadFactory):
    def create_workload(self, info: WorkloadInfo) -> Workload:
        made = super().create_workload(info)
        for tensor in info.constants:
            if tensor is not None and tensor.data is not None and tensor.data.size:
                ctypes.memset(address(tensor.data), 7, 1)
        return made


def unsteady(graph: object, layer: object, target: object) -> Support:
    return Support(f"asked for the {next(COUNTER)}th time")


def accept_pre_compiled(graph: object, layer: object, target: object) -> Support:
    return Support()


def drop(view: SubgraphView) -> OptimizationViews:
    return OptimizationViews(untouched=(SubgraphView.of(view.graph, view.names[:-1]),) if view.names[:-1] else ())


def sometimes_fail(view: SubgraphView) -> OptimizationViews:
    return OptimizationViews(failed=(view,)) if next(COUNTER) % 2 else OptimizationViews(untouched=(view,))


class Silent:
    """A context whose methods return None."""

    def before_load_network(self, network: int) -> None:
        pass

    after_load_network = before_unload_network = after_unload_network = before_load_network


RELU = (LayerType.RELU,)
CASES: dict[str, tuple[dict[str, object], type, str, tuple[object, ...], str]] = {
    "one bit": (spoiling(add_one), WorkloadFamily, "test_computes_what_it_takes", RELU, r"relu_int8_0 .* differs in 1"),
    "one bit, end to end": (spoiling(add_one), EndToEndFamily, "test_each_layer", RELU, "differs in 1 of"),
    "one bit, random": (spoiling(add_one), SubgraphFamily, "test_outputs_stay", (3,), "differs in"),
    "float": (spoiling(stretch), WorkloadFamily, "test_computes_what_it_takes", RELU, "relu_float32_0 .* differs"),
    "writes its inputs": (
        {**spoiling(scribble), **handles(HostTensorHandle)},
        EndToEndFamily,
        "test_the_callers_buffers",
        (),
        "an input was changed",
    ),
    "writes its input": (
        spoiling(scribble),
        WorkloadFamily,
        "test_computes_what_it_takes",
        RELU,
        "input '.*' was written",
    ),
    "writes its input, in a network": (
        {**spoiling(scribble), **handles(HostTensorHandle)},
        EndToEndFamily,
        "test_random_networks",
        (3,),
        "wrote an input|differs in",
    ),
    "writes a weight": (
        {"workload_factory": lambda self, memory, options: SpoilingWeights()},
        WorkloadFamily,
        "test_computes_what_it_takes",
        (LayerType.FULLY_CONNECTED,),
        "constant '.*' was written",
    ),
    "writes behind an output": (
        spoiling(overrun),
        WorkloadFamily,
        "test_computes_what_it_takes",
        RELU,
        "byte 1 behind '.*' was written",
    ),
    "writes before an input": (
        spoiling(underrun),
        WorkloadFamily,
        "test_computes_what_it_takes",
        RELU,
        "byte 1 before '.*' was written",
    ),
    "writes between tensors that cannot be imported": (
        {**spoiling(overrun_far), "tensor_handle_factories": without_imports},
        WorkloadFamily,
        "test_computes_what_it_takes",
        RELU,
        "bytes beside '.*' were written",
    ),
    "refuses what it took": (
        {"workload_factory": lambda self, memory, options: RefusingFactory()},
        WorkloadFamily,
        "test_computes_what_it_takes",
        RELU,
        "not today",
    ),
    "takes anything": (
        supporting(accept_pre_compiled),
        LayerSupportFamily,
        "test_takes_or_gives_a_reason",
        (LayerType.MEAN,),
        "mean_int32_0 is supported, but the operator rejects it",
    ),
    "unsteady": (
        supporting(unsteady),
        LayerSupportFamily,
        "test_takes_or_gives_a_reason",
        RELU,
        "from one object, .* from another",
    ),
    "takes nothing": (supporting(unsteady), SubgraphFamily, "test_it_takes_something", (), "supports none of"),
    "computes nothing": (supporting(unsteady), WorkloadFamily, "test_it_computes_something", (), "supports none of"),
    "takes nothing, end to end": (
        supporting(unsteady),
        EndToEndFamily,
        "test_data_changes_hands_and_comes_back",
        (),
        "supports none of",
    ),
    "loses a layer": (viewing(drop), SubgraphFamily, "test_every_layer_stands_in_one_list", (0,), "in none of its"),
    "fails at times": (
        viewing(sometimes_fail),
        SubgraphFamily,
        "test_every_layer_stands_in_one_list",
        (0,),
        "two objects of the backend differ",
    ),
    "mortal": (
        {"workload_factory": lambda self, memory, options: MortalFactory(self)},
        ObjectFamily,
        "test_nothing_depends_on_the_objects_life",
        (),
        "the backend is gone",
    ),
    "one object": (
        {"__new__": lambda kind: ONLY.setdefault(kind, object.__new__(kind))},
        ObjectFamily,
        "test_objects_are_made_anew",
        (),
        "one object twice",
    ),
    "events without the capability": (
        {"workload_factory": lambda self, memory, options: SlowFactory(0.0, None)},
        ObjectFamily,
        "test_events_need_the_capability",
        (),
        "lacks AsyncExecution",
    ),
    "pre-compiled": (
        supporting(accept_pre_compiled),
        LayerSupportFamily,
        "test_refuses_what_another_backend_pre_compiled",
        (),
        "of another backend is supported",
    ),
    "capability": (
        {"capabilities": lambda self: {"HasFp16": 1}},
        ObjectFamily,
        "test_capabilities",
        (),
        "expected a bool",
    ),
    "no host face": ({"has_host_face": lambda self: False}, ObjectFamily, "test_it_runs_on_the_host", (), "host face"),
    "forgets": (handles(Forgetful), HandleFamily, "test_what_is_written_is_read", ((7,),), "are not those written"),
    "imports anything": (
        handles(Greedy),
        HandleFamily,
        "test_foreign_memory_that_does_not_fit_is_refused",
        (),
        r"imports int32\[4, 15\]",
    ),
    "imports nothing": (handles(Stubborn), HandleFamily, "test_import_is_as_promised", (), "can_import said False"),
    "alignment": (
        {"tensor_handle_factories": lambda self, memory: (HostTensorHandleFactory(FACTORY, alignment_bytes=48),)},
        HandleFamily,
        "test_what_factories_promise_is_consistent",
        (),
        "not a power of two",
    ),
    "ids": (
        {"tensor_handle_factories": lambda self, memory: (HostTensorHandleFactory(FactoryId(str(next(COUNTER)))),)},
        HandleFamily,
        "test_ids_are_the_same_for_every_manager",
        (),
        "without a manager",
    ),
    "one place": (
        handles(OneForAll),
        MemoryFamily,
        "test_tensors_that_live_together_do_not_share_bytes",
        (),
        "was overwritten",
    ),
    "one manager": (
        {"memory_manager": lambda self, allocator=None: ONE_MANAGER},
        MemoryFamily,
        "test_managers_are_apart",
        (),
        "one manager for two networks",
    ),
    "leaks": (
        {"memory_manager": lambda self, allocator=None: Leaking(allocator)},
        MemoryFamily,
        "test_custom_allocator_is_refused_or_balanced",
        (),
        "1 blocks were not freed",
    ),
    "takes none of it": (
        {"memory_manager": lambda self, allocator=None: HostMemoryManager()},
        MemoryFamily,
        "test_custom_allocator_is_refused_or_balanced",
        (),
        "accepted, but not used",
    ),
    "shares memory": (handles(OneForAll), RuntimeFamily, "test_networks_and_threads_at_once", (), "differs in"),
}
ONLY: dict[type, object] = {}


def subject_of(attributes: dict[str, object]) -> Subject:
    kind = type("Broken", (CpuRef,), {"id": BackendId("Broken"), **attributes})

    def registry() -> BackendRegistry:
        made = BackendRegistry()
        made.register("Broken", kind, origin="test")
        return made

    return Subject(id="Broken", registry=registry)


ERRORS = (AssertionError, FerruleError, RuntimeError)


@pytest.mark.parametrize("name", CASES)
def test_what_it_computes_says_and_keeps(name: str) -> None:
    attributes, family, method, arguments, message = CASES[name]
    subject, test = subject_of(attributes), getattr(family(), method)
    parameters = inspect.signature(test).parameters
    extra = {"shared": True} if "shared" in parameters else {}
    with subject.runtime() as runtime:
        fixtures = {"subject": subject, "runtime": runtime, "backend": runtime.backend()}
        given = [fixtures[each] for each in parameters if each in fixtures]
        with pytest.raises(ERRORS, match=message) as caught:
            test(*given, *arguments, **extra)
    if method == "test_each_layer":
        assert "the layer has ReluDescriptor" in caught.value.__notes__[0]


def test_an_allocator_finds_what_is_written_behind_its_block() -> None:
    allocator = Counting()
    block = allocator.allocate(100, 64)
    allocator.free(block)
    block = allocator.allocate(100, 64)
    assert block.array is not None
    poke(block.array, 100)
    with pytest.raises(AssertionError, match="byte 1 behind 'a block of the allocator' was written"):
        allocator.free(block)


def test_a_context_without_answers() -> None:
    subject = subject_of({"context": lambda self, options: Silent()})
    backend = subject.registry().create("Broken")
    with pytest.raises(AssertionError, match=r"before_load_network\(0\) returned None"):
        ContextFamily().test_it_is_told_of_everything_and_content(subject, backend)


def test_a_backend_that_is_not_usable_fails_with_its_reason() -> None:
    def context(self: CpuRef, options: object) -> None:
        raise FerruleError("the device is asleep")

    with pytest.raises(FerruleError, match=r"'Broken' is not usable here: .*the device is asleep"):
        subject_of({"context": context}).runtime()
    with pytest.raises(FerruleError, match="'Nobody' is not usable here: it is not registered"):
        Subject(id="Nobody", registry=BackendRegistry).runtime()


def test_one_class_has_all_families() -> None:
    tests = {name for name in dir(BackendFamily) if name.startswith("test_")}
    parts = BackendFamily.__bases__
    assert tests == {name for part in parts for name in dir(part) if name.startswith("test_")}
    assert sum(sum(name in vars(part) for part in parts) for name in tests) == len(tests)


def test_the_cases_reach_every_type_that_the_reference_has() -> None:
    from ferrule.network.validation import check_layer
    from ferrule.operators.table import OPERATORS
    from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case

    runtimes_own = {LayerType.DEBUG, LayerType.MEM_COPY, LayerType.MEM_IMPORT, LayerType.FALLBACK_IMPORT}
    assert set(LAYER_TYPES) == set(OPERATORS) - runtimes_own
    taken = set()
    for type_, dtype in itertools.product(LAYER_TYPES, DataType):
        graph = layer_case(type_, dtype, 0)
        try:
            check_layer(graph, graph.layers[0])
        except FerruleError:
            continue
        taken.add((type_, dtype))
    assert {type_ for type_, _ in taken} == set(LAYER_TYPES)
    assert {dtype for _, dtype in taken} == set(DataType)
    assert len(taken) > 150
