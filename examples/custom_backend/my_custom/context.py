# SPDX-License-Identifier: Apache-2.0
"""The backend's context: the runtime calls it at each load and unload of a network."""

from __future__ import annotations

from ferrule.backends import BackendUnavailableError, CreationOptions, NetworkId


class CustomContext:
    """Counts the loaded networks, of which the device can hold only a few.

    Options (`CreationOptions.backend_options["MyCustom"]`): `networks`, the number of networks that may be loaded at
    once (8); `present`, False for a host without the device.
    """

    def __init__(self, options: CreationOptions) -> None:
        own = options.backend_options.get("MyCustom", {})
        if not own.get("present", True):
            raise BackendUnavailableError("the adder is not plugged in")
        self._room = int(own.get("networks", 8))
        self.loaded: set[NetworkId] = set()

    def before_load_network(self, network: NetworkId) -> bool:
        """Return False, which refuses the network, if the device is full."""
        if len(self.loaded) >= self._room:
            return False
        self.loaded.add(network)
        return True

    def after_load_network(self, network: NetworkId) -> bool:
        """Return whether the network is loaded; there is nothing else to do."""
        return network in self.loaded

    def before_unload_network(self, network: NetworkId) -> bool:
        """Return whether the network is loaded; the device can release it at any time."""
        return network in self.loaded

    def after_unload_network(self, network: NetworkId) -> bool:
        """Make space for another network."""
        self.loaded.discard(network)
        return True
