# SPDX-License-Identifier: Apache-2.0
"""What a backend can do besides running layers, by name and value (as Arm NN's BackendOptions::BackendOption)."""

from __future__ import annotations

from collections.abc import Mapping

CapabilityValue = bool | int | float | str

Capabilities = Mapping[str, CapabilityValue]
"""By name; the names that Ferrule itself asks for are the constants below, others are the backend's own business."""

ASYNC_EXECUTION = "AsyncExecution"
"""bool: workloads return events and several networks may be in flight at once."""
ALL_OR_NOTHING = "AllOrNothing"
"""bool: the backend takes a whole network or no layer of it."""
HAS_FP16 = "HasFp16"
"""bool: it computes in float16."""
PROTECTED_CONTENT_ALLOCATION = "ProtectedContentAllocation"
"""bool: with a custom allocator its tensors may live in protected memory."""
EXTERNALLY_MANAGED_MEMORY = "ExternallyManagedMemory"
"""bool: it takes its working memory from whoever loads the network."""


def has_capability(capabilities: Capabilities, name: str, value: CapabilityValue = True) -> bool:
    """Return whether a capability is there with that very value and type (1 is not True)."""
    found = capabilities.get(name)
    return found is not None and type(found) is type(value) and found == value
