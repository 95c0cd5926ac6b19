# SPDX-License-Identifier: Apache-2.0
"""Backends: who can run a layer, and how."""

from ferrule.backends.backend import Backend, BackendId, LayerSupport, Support
from ferrule.backends.contract import BrokenBackendError, asking
from ferrule.backends.device import Device, default_device
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.registry import backend_ids, create_backend

__all__ = [
    "Backend",
    "BackendId",
    "BrokenBackendError",
    "Device",
    "LayerSupport",
    "PreCompiledDescriptor",
    "Support",
    "asking",
    "backend_ids",
    "create_backend",
    "default_device",
]
