# SPDX-License-Identifier: Apache-2.0
"""Capabilities: features of a backend by name and value, as in Arm NN's BackendOptions::BackendOption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ferrule.graph import Rounding, roundings

CapabilityValue = bool | int | float | str

Capabilities = Mapping[str, CapabilityValue]
"""Values by name. Ferrule itself reads only the names below; a backend may define others for its own use."""

ASYNC_EXECUTION = "AsyncExecution"
"""bool: workloads return events and several networks may be in flight at once."""
ALL_OR_NOTHING = "AllOrNothing"
"""bool: the backend runs either the whole network or no layer of it."""
HAS_FP16 = "HasFp16"
"""bool: it computes in float16."""
PROTECTED_CONTENT_ALLOCATION = "ProtectedContentAllocation"
"""bool: with a custom allocator, its tensors may lie in protected memory."""


ROUNDING_RULES = "RoundingRules"
"""str: the names of the rules by which it requantises (see `ferrule.graph.Rounding`), between spaces. A backend that
does not have it computes "tflm" only; layers with other rules are not offered to it."""


RUNS_BESIDE = "RunsBeside"
"""int: in firmware, its devices work on whole subgraphs beside the core; the value is what it costs the core to begin
and to collect one of them, in instructions. Such a subgraph is divided where this lets other layers begin earlier."""


FIRMWARE_FLOATS = "FirmwareFloats"
"""str: the options of a model, as name=value between spaces, with which workloads on the host compute the same bits of
floats as the firmware; "" if they always do. Without it, these bits are not known on the host."""


def firmware_float_options(capabilities: Capabilities) -> dict[str, str] | None:
    """Return the value of FIRMWARE_FLOATS, None without it; ValueError if it is not name=value between spaces."""
    declared = capabilities.get(FIRMWARE_FLOATS)
    if declared is None:
        return None
    if not isinstance(declared, str) or not all(name and value for name, value in _pairs(declared)):
        raise ValueError(f"{FIRMWARE_FLOATS} is {declared!r}, expected name=value between spaces")
    return dict(_pairs(declared))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split():
        name, _, value = part.partition("=")
        yield name, value


def subgraph_cost(capabilities: Capabilities) -> int | None:
    """Return the value of RUNS_BESIDE, None without it; ValueError if it is no number of instructions."""
    declared = capabilities.get(RUNS_BESIDE)
    if declared is not None and (isinstance(declared, bool) or not isinstance(declared, int) or declared < 0):
        raise ValueError(f"{RUNS_BESIDE} is {declared!r}, expected instructions, 0 or more")
    return declared


def declared_rules(capabilities: Capabilities) -> frozenset[Rounding]:
    """Return the rules by which a backend requantises; ValueError if the capability is not the names of rules."""
    declared = capabilities.get(ROUNDING_RULES, Rounding.TFLM.value)
    if not isinstance(declared, str):
        raise ValueError(f"{ROUNDING_RULES} is {declared!r}, expected a text")  # noqa: TRY004 - as for a wrong text
    return roundings(declared.split())


def has_capability(capabilities: Capabilities, name: str, value: CapabilityValue = True) -> bool:
    """Return whether the capability has exactly this value and type; 1 is not True."""
    found = capabilities.get(name)
    return found is not None and type(found) is type(value) and found == value
