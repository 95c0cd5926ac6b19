# SPDX-License-Identifier: Apache-2.0
"""A backend that fails while a network is loaded, run or unloaded: one error names it, and the runtime goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest
from mock_backends import Mock, Slow, assigned, chain, check_chain, mock, registry_of, sample

from ferrule.backends.backend import Backend
from ferrule.backends.context import CreationOptions
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.guarded import bare
from ferrule.backends.workload import Workload
from ferrule.errors import FerruleError
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import Runtime

HINTS = {"layer1": "CpuRef"}
BOTH = OptimizerOptions(simplify=False, import_enabled=True, export_enabled=True)
PLAIN = OptimizerOptions(simplify=False)
MIXED = OptimizerOptions(simplify=False, hints=HINTS)
IMPORTING = OptimizerOptions(simplify=False, import_enabled=True, export_enabled=True, hints=HINTS)


def boom(*arguments: object, **keywords: object) -> NoReturn:
    raise ValueError("boom")


def leave(*arguments: object, **keywords: object) -> NoReturn:
    sys.exit(0)


def interrupt(*arguments: object, **keywords: object) -> NoReturn:
    raise KeyboardInterrupt


def giving(value: object) -> Callable[..., object]:
    return lambda *arguments, **keywords: value


def read_only() -> np.ndarray[Any, Any]:
    array = np.zeros((2, 8), np.float32)
    array.flags.writeable = False
    return array


class Tampered:
    """An object of a backend, one method of which is replaced."""

    def __init__(self, inner: object, method: str, instead: Callable[..., object]) -> None:
        vars(self).update({"_inner": inner, method: instead})

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


class Profiling:
    """A profiling context without events."""

    def enable_profiling(self, *, enabled: bool) -> bool:
        return enabled

    def take_events(self) -> list[object]:
        return []


def tampered(kind: str, method: str, instead: Callable[..., object]) -> type[Mock]:
    """Return a backend 'Bad' whose objects of one kind have a method replaced."""

    class Bad(Slow):
        id = "Bad"
        factory_id = "Bad/Factory"
        delay_s = 0.0

        def memory_manager(self, allocator: object = None) -> object:
            made = super().memory_manager(allocator)
            return Tampered(made, method, instead) if kind == "manager" else made

        def tensor_handle_factories(self, memory: object) -> object:
            inner = getattr(memory, "_inner", memory)
            (factory,) = Slow.tensor_handle_factories(self, inner)
            if kind != "handle":
                return (factory,)
            make = lambda info, *, managed: Tampered(factory.create_handle(info, managed=managed), method, instead)  # noqa: E731
            return (Tampered(factory, "create_handle", make),)

        def workload_factory(self, memory: object, options: object) -> object:
            factory = super().workload_factory(None, {})
            if kind == "workload":
                make = lambda info: Tampered(factory.create_workload(info), method, instead)  # noqa: E731
            elif kind == "event":
                make = lambda info: WithEvent(factory.create_workload(info))  # noqa: E731
            else:
                return factory
            return Tampered(factory, "create_workload", make)

        def profiling_context(self, options: object) -> object:
            return Tampered(Profiling(), method, instead) if kind == "profiling" else Profiling()

    class WithEvent:
        def __init__(self, workload: Workload) -> None:
            self.workload = workload

        def execute(self) -> object:
            return Tampered(self.workload.execute(), method, instead)

    return Bad


AT_LAYER = r"^layer 'layer\d' \(LEAKY_RELU\) on backend 'Bad', device 'Bad': backend 'Bad' "
FAULTS: list[tuple[str, str, Callable[..., object], OptimizerOptions, str]] = [
    ("workload", "execute", boom, MIXED, AT_LAYER + r"failed in execute\(\): ValueError: boom"),
    ("workload", "execute", leave, MIXED, AT_LAYER + r"failed in execute\(\): SystemExit: 0"),
    ("workload", "execute", interrupt, MIXED, AT_LAYER + r"failed in execute\(\): KeyboardInterrupt"),
    ("workload", "execute", giving(3), MIXED, AT_LAYER + r"returned an int from execute\(\), .* wait\(\)"),
    ("event", "wait", boom, MIXED, AT_LAYER + r"failed in wait\(\) of the event of execute\(\): ValueError: boom"),
    ("handle", "map", boom, MIXED, r"^backend 'Bad' failed in map\(\) of tensor '.*': ValueError: boom"),
    (
        "handle",
        "map",
        giving(None),
        MIXED,
        r"^backend 'Bad' returned None from map\(\) of tensor '.*', expected ndarray",
    ),
    (
        "handle",
        "map",
        giving(np.zeros(3, np.float32)),
        MIXED,
        r"an array of float32\[3\] from map\(\) .*, expected float32\[2, 8\]",
    ),
    ("handle", "map", giving(np.zeros((2, 8))), MIXED, r"an array of float64\[2, 8\] from map\(\)"),
    ("handle", "map", giving(read_only()), MIXED, r"a read-only array from map\(\) of tensor '.*', expected one that"),
    ("handle", "unmap", boom, MIXED, r"backend 'Bad' failed in unmap\(\) of tensor '.*': ValueError: boom"),
    ("handle", "manage", boom, MIXED, r"backend 'Bad' failed in manage\(\) of tensor '.*': ValueError: boom"),
    ("handle", "allocate", boom, MIXED, r"backend 'Bad' failed in allocate\(\) of tensor '.*': ValueError: boom"),
    (
        "handle",
        "import_memory",
        boom,
        IMPORTING,
        r"backend 'Bad' failed in import_memory\(\) of tensor '.*': ValueError",
    ),
    (
        "handle",
        "import_memory",
        giving(None),
        IMPORTING,
        r"'Bad' returned None from import_memory\(\) .*, expected bool",
    ),
    ("handle", "end_import", boom, IMPORTING, r"'Bad' failed in end_import\(\) of tensor '.*': ValueError: boom"),
    ("manager", "acquire", boom, MIXED, r"^backend 'Bad' failed in acquire\(\): ValueError: boom$"),
    ("manager", "release", boom, MIXED, r"^backend 'Bad' failed in release\(\): ValueError: boom$"),
    ("profiling", "take_events", boom, MIXED, r"^backend 'Bad' failed in take_events\(\): ValueError: boom$"),
    (
        "profiling",
        "take_events",
        giving(None),
        MIXED,
        r"^backend 'Bad' returned None from take_events\(\), expected list",
    ),
]


@pytest.mark.parametrize(("kind", "method", "instead", "options", "message"), FAULTS)
def test_a_fault_is_one_error_that_names_the_backend(
    kind: str, method: str, instead: Callable[..., object], options: OptimizerOptions, message: str
) -> None:
    with Runtime(CreationOptions(profiling=True), registry_of(tampered(kind, method, instead), CpuRef)) as runtime:
        optimized = optimize(chain(), ["Bad", "CpuRef"], runtime.registry, options)
        with pytest.raises(BrokenBackendError, match=message):
            live(runtime, optimized)
        good = runtime.load_network(optimize(chain(), ["CpuRef"], runtime.registry, PLAIN))
        check_chain(runtime, good)


def live(runtime: Runtime, optimized: OptimizedNetwork) -> None:
    """Load a network, run it and unload it."""
    number = runtime.load_network(optimized)
    runtime.enqueue_workload(number, [sample()])
    runtime.unload_network(number)


def test_closing_unloads_every_network_and_tells_all_faults() -> None:
    released: list[str] = []

    def failing(name: str) -> type[Backend]:
        def memory_manager(self: Mock, allocator: object = None) -> object:
            def release() -> None:
                released.append(name)
                raise OSError(f"{name} is stuck")

            return Tampered(Mock.memory_manager(self, allocator), "release", release)

        def factories(self: Mock, memory: object) -> object:
            return Mock.tensor_handle_factories(self, getattr(bare(memory), "_inner", None))

        return mock(name, memory_manager=memory_manager, tensor_handle_factories=factories)

    one, two = failing("One"), failing("Two")
    runtime = Runtime(registry=registry_of(one, two))
    for backends in ({"layer1": two}, {"layer2": two}):
        runtime.enqueue_workload(runtime.load_network(assigned(chain(), backends, one)), [sample()])
    with pytest.raises(FerruleError) as error:
        runtime.close()
    assert sorted(released) == ["One", "One", "Two", "Two"]
    text = str(error.value)
    assert text.count("backend 'One' failed in release(): OSError: One is stuck") == 2
    assert text.count("backend 'Two' failed in release(): OSError: Two is stuck") == 2
    runtime.close()


def test_the_first_fault_of_a_run_is_the_one_that_is_told() -> None:
    bad = tampered("handle", "end_import", boom)
    failing = type("Bad", (bad,), {"id": "Bad", "failure": OSError("first")})
    with Runtime(registry=registry_of(failing)) as runtime:
        number = runtime.load_network(optimize(chain(), ["Bad"], runtime.registry, BOTH))
        with pytest.raises(BrokenBackendError, match="OSError: first"):
            runtime.enqueue_workload(number, [sample()])


def test_a_copy_names_the_layer_and_the_backend_whose_memory_fails() -> None:
    maps: list[str] = []

    def once(*arguments: object) -> object:
        maps.append("map")
        if len(maps) > 3:  # the input, and what the first layer reads and writes
            raise ValueError("boom")
        return np.zeros((2, 8), np.float32)

    bad = tampered("handle", "map", once)
    message = r"^layer '.*' \(MEM_COPY\) on backend '.*', device '.*': backend 'Bad' failed in map\(\) of tensor"
    with Runtime(registry=registry_of(bad, CpuRef)) as runtime:
        optimized = optimize(chain(2), ["Bad", "CpuRef"], runtime.registry, MIXED)
        with pytest.raises(BrokenBackendError, match=message):
            live(runtime, optimized)
