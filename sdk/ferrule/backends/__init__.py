# SPDX-License-Identifier: Apache-2.0
"""Backends: who can run a layer, and how."""

from ferrule.backends.backend import Backend, BackendId, LayerSupport, Support
from ferrule.backends.registry import backend_ids, create_backend

__all__ = ["Backend", "BackendId", "LayerSupport", "Support", "backend_ids", "create_backend"]
