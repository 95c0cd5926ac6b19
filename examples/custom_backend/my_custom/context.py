# SPDX-License-Identifier: Apache-2.0
"""What the backend is told while a runtime lives."""

from __future__ import annotations

from ferrule.backends.context import BackendUnavailableError, CreationOptions, NetworkId


class CustomContext:
    """Counts the networks that are loaded; the device has room for a few.

    Options (`CreationOptions.backend_options["MyCustom"]`): `networks`, how many may be loaded at once (8); `present`,
    False for a host without the device.
    """

    def __init__(self, options: CreationOptions) -> None:
        own = options.backend_options.get("MyCustom", {})
        if not own.get("present", True):
            raise BackendUnavailableError("the adder is not plugged in")
        self._room = int(own.get("networks", 8))
        self.loaded: set[NetworkId] = set()

    def before_load_network(self, network: NetworkId) -> bool:
        """Refuse a network if there is no room for it."""
        if len(self.loaded) >= self._room:
            return False
        self.loaded.add(network)
        return True

    def after_load_network(self, network: NetworkId) -> bool:
        """Nothing is left to do."""
        return network in self.loaded

    def before_unload_network(self, network: NetworkId) -> bool:
        """The device can let go of a network at any time."""
        return network in self.loaded

    def after_unload_network(self, network: NetworkId) -> bool:
        """Make room."""
        self.loaded.discard(network)
        return True
