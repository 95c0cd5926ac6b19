# SPDX-License-Identifier: Apache-2.0
"""Notifies the backends' contexts of loads and unloads, in order."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ferrule.backends.context import BackendContext, NetworkId
from ferrule.backends.contract import PLUGIN_FAULTS, pass_on_interrupts
from ferrule.backends.device import BackendId
from ferrule.runtime.errors import NetworkLoadError, NetworkUnloadError

_LOGGER = logging.getLogger(__name__)


@dataclass
class Contexts:
    """The contexts of all usable backends, in the order of the registry."""

    _contexts: dict[BackendId, BackendContext]

    @contextmanager
    def loading(self, network: NetworkId) -> Iterator[None]:
        """Notify the contexts before and after a load.

        The contexts notified before the load are notified after it, in the same order, even if the load fails.

        Raises:
            NetworkLoadError: a context refuses.
        """
        told: list[tuple[BackendId, BackendContext]] = []
        try:
            for backend, context in self._contexts.items():
                told.append((backend, context))
                if not context.before_load_network(network):
                    raise NetworkLoadError(f"backend '{backend}' refuses to load network {network}")
            yield
        finally:
            for backend, context in told:
                _report(backend, "after_load_network", context, network)

    def before_unload(self, network: NetworkId) -> None:
        """Notify the contexts that a network is about to be unloaded; NetworkUnloadError if one refuses."""
        for backend, context in self._contexts.items():
            if not context.before_unload_network(network):
                raise NetworkUnloadError(
                    f"backend '{backend}' refuses to unload network {network}, which stays loaded",
                    hint="try again when the backend is ready for it, or close the runtime",
                )

    def report(self, moment: str, network: NetworkId) -> None:
        """Notify the contexts of an event that they cannot refuse; `moment` is the name of their method."""
        for backend, context in self._contexts.items():
            _report(backend, moment, context, network)

    def clear(self) -> None:
        """Release all contexts."""
        self._contexts.clear()


def _report(backend: BackendId, moment: str, context: BackendContext, network: NetworkId) -> None:
    """Notify a context of an event that it cannot refuse; log an error or a negative answer."""
    try:
        content = getattr(context, moment)(network)
    except PLUGIN_FAULTS as error:
        pass_on_interrupts(error)
        _LOGGER.exception("backend '%s': %s(%d) failed", backend, moment, network)
        return
    if not content:
        _LOGGER.warning("backend '%s': %s(%d) returned False", backend, moment, network)
