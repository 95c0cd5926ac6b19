# SPDX-License-Identifier: Apache-2.0
"""The backend's part of a runtime: which device its networks use."""

from __future__ import annotations

from ferrule.backends.context import CreationOptions, NetworkId
from ferrule.backends.gpu_acc.opencl import choose_device, chosen


class GpuContext:
    """Chooses the device when a runtime is made; the networks that the runtime loads get it with this context."""

    def __init__(self, backend_id: str, options: CreationOptions) -> None:
        self.device = choose_device(chosen(options.backend_options.get(backend_id, {})))

    def before_load_network(self, network: NetworkId) -> bool:
        """Let it go on."""
        del network
        return True

    def after_load_network(self, network: NetworkId) -> bool:
        """Have nothing to do."""
        del network
        return True

    def before_unload_network(self, network: NetworkId) -> bool:
        """Let it go on."""
        del network
        return True

    def after_unload_network(self, network: NetworkId) -> bool:
        """Have nothing to do: the queue ends with the network's workloads."""
        del network
        return True
