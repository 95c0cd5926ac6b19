# SPDX-License-Identifier: Apache-2.0
"""Backends: the interface through which layers are supported, optimised and run."""

from ferrule.backends.backend import Backend, LayerSupport, Policy, Support
from ferrule.backends.contract import BrokenBackendError, asking
from ferrule.backends.device import BackendId, Device, default_device
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.registry import backend_ids, create_backend
from ferrule.backends.target import CoreFeatures, Face, Target, default_target

__all__ = [
    "Backend",
    "BackendId",
    "BrokenBackendError",
    "CoreFeatures",
    "Device",
    "Face",
    "LayerSupport",
    "Policy",
    "PreCompiledDescriptor",
    "Support",
    "Target",
    "asking",
    "backend_ids",
    "create_backend",
    "default_device",
    "default_target",
]
