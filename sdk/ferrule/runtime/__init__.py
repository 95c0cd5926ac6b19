# SPDX-License-Identifier: Apache-2.0
"""The runtime, which runs optimised networks on the host."""

from ferrule.runtime.debug import DebugCallback
from ferrule.runtime.errors import NetworkLoadError, NetworkUnloadError
from ferrule.runtime.fallback_memory import FallbackBlock
from ferrule.runtime.profiler import Profiler, WorkloadEvent
from ferrule.runtime.runtime import Runtime

__all__ = [
    "DebugCallback",
    "FallbackBlock",
    "NetworkLoadError",
    "NetworkUnloadError",
    "Profiler",
    "Runtime",
    "WorkloadEvent",
]
