# SPDX-License-Identifier: Apache-2.0
"""The runtime: loads optimised networks and runs them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule._typing import override
from ferrule.backends.context import CreationOptions, NetworkId
from ferrule.backends.origin import BackendRow
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.closing import Closing
from ferrule.errors import FerruleError
from ferrule.graph import Array
from ferrule.operators.work import check_work
from ferrule.optimizer.optimized import OptimizedNetwork
from ferrule.runtime.admission import admit_all
from ferrule.runtime.binding import Arrays
from ferrule.runtime.contexts import Contexts
from ferrule.runtime.debug import DebugCallback
from ferrule.runtime.errors import Faults
from ferrule.runtime.fallback_memory import FallbackBlock
from ferrule.runtime.loaded_network import LoadedNetwork, Parts
from ferrule.runtime.loading import load_parts
from ferrule.runtime.profiler import Profiler

if TYPE_CHECKING:
    from ferrule.backends.dynamic.report import LoadReport


class Runtime(Closing):
    """Loads optimised networks and runs them on this machine; as a context manager, it closes itself.

    All methods may be called from several threads. Runs of one network exclude each other, since it has only one set of
    tensors; different networks can run at the same time. To run one network twice at the same time, load it twice.
    Loads and unloads exclude each other, and an unload waits for the network's current run.
    """

    def __init__(self, options: CreationOptions | None = None, registry: BackendRegistry | None = None) -> None:
        """Create the contexts of all backends in the registry (default: the process's) and of dynamic backends.

        A backend that cannot work here is not usable in this runtime, and `backends` has the reason. Dynamic backends
        are loaded from the folder given in the options, or else from the default folders, and belong only to this
        runtime.

        Raises:
            FerruleError: the options name an unknown backend.
        """
        from ferrule.backends.dynamic.load import load_dynamic_backends

        self._options = given = options or CreationOptions()
        self._registry = (registry or default_registry()).scope()
        try:
            self._dynamic_report = load_dynamic_backends(
                self._registry,
                given.dynamic_backends_path,
                isolate=given.isolate_dynamic_backends,
                answer_s=given.isolated_timeout_s,
            )
            self._admitted, self._rows = admit_all(self._registry, self._options)
        except BaseException:
            self._registry.close()
            raise
        contexts = {key: found.context for key, found in self._admitted.items() if found.context is not None}
        self._contexts = Contexts(contexts)
        self._networks: dict[NetworkId, LoadedNetwork] = {}
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._closed = False

    @property
    def registry(self) -> BackendRegistry:
        """The usable backends, for optimising networks, and the reasons for those left out.

        Backends registered here belong only to this runtime.
        """
        return self._registry

    @property
    def backends(self) -> tuple[BackendRow, ...]:
        """All backends found, with the reason for each that is not usable here."""
        return self._rows

    @property
    def dynamic_report(self) -> tuple[LoadReport, ...]:
        """A row for each file and folder that was searched for dynamic backends."""
        return self._dynamic_report

    def load_network(self, optimized: OptimizedNetwork) -> NetworkId:
        """Make a network ready to run and return its number.

        Raises:
            BudgetError: a run on one sample takes more memory or work than the present budget has.
            NetworkLoadError: a backend refuses the network or is not usable here.
            FerruleError: a backend refuses one of its layers.
        """
        with self._lock:
            self._check_open()
            check_work(optimized.graph)
            number = NetworkId(next(self._numbers))
            with self._contexts.loading(number):
                parts = load_parts(optimized, self._registry, self._admitted, self._options)
                profiler = Profiler(optimized.graph.name, enabled=self._options.profiling)
                self._networks[number] = self._made_ready(parts, profiler)
            return number

    def _made_ready(self, parts: Parts, profiler: Profiler) -> LoadedNetwork:
        """Return the network of these parts; the ownership check derives from this."""
        return LoadedNetwork(parts, profiler)

    def enqueue_workload(
        self,
        network: NetworkId,
        inputs: Arrays,
        outputs: Arrays | None = None,
        *,
        real: bool = False,
        reset_each: bool | Sequence[bool] = False,
    ) -> list[Array]:
        """Run a network once for each sample and return its outputs, in order.

        Inputs are arrays in order or by name; each has its input's shape, or a first axis n times as long for n
        samples, whose outputs are joined along the first axis. Outputs are written to the given buffers, in order or by
        name, or to new arrays where none is given; these buffers and arrays are returned. With `real`, inputs and
        outputs are real numbers; see `TensorInfo.quantize`. The samples of a network with state go on with the sequence
        of runs; with `reset_each`, each sample begins with the initial state, or each for which its value in a sequence
        is true. If the call raises, the contents of the buffers are undefined, and a network with state has to be reset
        before its next run.

        Raises:
            InputError: an array or buffer is missing, unknown, or of the wrong shape or dtype.
            FerruleError: there is no such network, its state is not valid, or a backend reports a failure; the message
                names the layer.
        """
        loaded = self._networks.get(network) or self._loaded(network)
        return loaded.run(inputs, outputs, real=real, reset_each=reset_each)

    def reset_state(self, network: NetworkId) -> None:
        """Let the next run of a network begin with its initial state, as the first one does; see docs/state.md.

        Waits for the current run. A network without state stays as it is.

        Raises:
            FerruleError: there is no such network.
        """
        self._loaded(network).reset_state()

    def unload_network(self, network: NetworkId) -> None:
        """Unload a network: wait for its current run, then release its memory.

        Raises:
            NetworkUnloadError: a backend's context refuses; the network stays loaded.
            FerruleError: there is no such network.
        """
        with self._lock:
            self._loaded(network).check_outside()
            self._contexts.before_unload(network)
            self._drop(network)

    def profiler(self, network: NetworkId) -> Profiler:
        """Return the profiler of a network; it records runs if the runtime was created with `profiling`."""
        return self._loaded(network).profiler

    def fallback_memory(self, network: NetworkId) -> tuple[FallbackBlock, ...]:
        """Return the blocks of memory that a network holds between backends that both import it."""
        return self._loaded(network).fallback_blocks

    def register_debug_callback(self, network: NetworkId, callback: DebugCallback) -> None:
        """Let the DEBUG layers of a network call `callback` instead of logging the ranges of their tensors."""
        self._loaded(network).debug.callback = callback

    @override
    def close(self) -> None:
        """Unload all networks and release all backends, which cannot refuse; a second call does nothing.

        Raises:
            FerruleError: backends failed to release memory; all networks are unloaded nevertheless.
        """
        with self._lock:
            for loaded in self._networks.values():
                loaded.check_outside()
            self._closed = True
            faults = Faults()
            for network in tuple(self._networks):
                self._contexts.report("before_unload_network", network)
                faults.during(self._drop, network)
            self._contexts.clear()
            self._admitted.clear()
            faults.during(self._registry.close)
            faults.throw()

    def _drop(self, network: NetworkId) -> None:
        try:
            self._networks.pop(network).release()
        finally:
            self._contexts.report("after_unload_network", network)

    def _loaded(self, network: NetworkId) -> LoadedNetwork:
        loaded = self._networks.get(network)
        if loaded is None:
            self._check_open()
            known = ", ".join(map(str, self._networks)) or "none"
            raise FerruleError(f"there is no loaded network {network}", hint=f"loaded: {known}")
        return loaded

    def _check_open(self) -> None:
        if self._closed:
            raise FerruleError("the runtime is closed", hint="make a new one")
