# SPDX-License-Identifier: Apache-2.0
"""The errors of a runtime, except those about its inputs."""

from __future__ import annotations

from ferrule.errors import FerruleError


class NetworkLoadError(FerruleError):
    """A network cannot be loaded: a backend is not usable here, refuses it, or lacks something that its layers need."""


class NetworkUnloadError(FerruleError):
    """A backend's context refuses the unload; the network stays loaded."""
