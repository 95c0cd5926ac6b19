# SPDX-License-Identifier: Apache-2.0
"""The backend's part of a runtime: which device its networks use, and who records what they do."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from ferrule.backends.context import CreationOptions, NetworkId
from ferrule.backends.gpu_acc.opencl import OpenClDevice, choose_device, chosen
from ferrule.backends.gpu_acc.profiling import Recorder

_LOADING = threading.local()
"""The context of the runtime that loads a network in this thread."""
_RECORDERS: WeakKeyDictionary[Recorder, CreationOptions] = WeakKeyDictionary()
_LOCK = threading.Lock()


class GpuContext:
    """Chooses the device when a runtime is made, and lends it to the networks that the runtime loads.

    A load runs in one thread, between `before_load_network` and `after_load_network`: that is how what a runtime's
    options say reaches workload factories, which know nothing of runtimes.
    """

    def __init__(self, backend_id: str, options: CreationOptions) -> None:
        self._options = options
        self.device = choose_device(chosen(options.backend_options.get(backend_id, {})))

    @property
    def recorder(self) -> Recorder | None:
        """The profiling context that was made for the same runtime."""
        with _LOCK:
            return next((key for key, options in _RECORDERS.items() if options is self._options), None)

    def before_load_network(self, network: NetworkId) -> bool:
        """Lend the device to the load that begins in this thread."""
        del network
        _LOADING.context = self
        return True

    def after_load_network(self, network: NetworkId) -> bool:
        """End the loan."""
        del network
        _LOADING.context = None
        return True

    def before_unload_network(self, network: NetworkId) -> bool:
        """Let it go on."""
        del network
        return True

    def after_unload_network(self, network: NetworkId) -> bool:
        """Have nothing to do: the queues end with the network's workloads."""
        del network
        return True


def new_recorder(options: CreationOptions) -> Recorder:
    """Return the profiling context of a new runtime."""
    recorder = Recorder()
    with _LOCK:
        _RECORDERS[recorder] = options
    return recorder


def loading_device() -> OpenClDevice | None:
    """Return the device of the runtime that loads a network in this thread; None outside of a load."""
    context: GpuContext | None = getattr(_LOADING, "context", None)
    return None if context is None else context.device


def loading_recorder() -> Recorder | None:
    """Return the profiling context of that runtime, if it has one."""
    context: GpuContext | None = getattr(_LOADING, "context", None)
    return None if context is None else context.recorder
