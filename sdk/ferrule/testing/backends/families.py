# SPDX-License-Identifier: Apache-2.0
"""All families in one class."""

from __future__ import annotations

from ferrule.testing.backends.layers import LayerSupportFamily, WorkloadFamily
from ferrule.testing.backends.memory import HandleFamily, MemoryFamily
from ferrule.testing.backends.networks import EndToEndFamily
from ferrule.testing.backends.running import ContextFamily, ObjectFamily, RuntimeFamily
from ferrule.testing.backends.subgraphs import SubgraphFamily


class BackendFamily(
    ObjectFamily,
    LayerSupportFamily,
    WorkloadFamily,
    SubgraphFamily,
    HandleFamily,
    MemoryFamily,
    ContextFamily,
    RuntimeFamily,
    EndToEndFamily,
):
    """Every interface of a backend with a host face, in the same form for each backend."""
