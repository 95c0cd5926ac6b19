# SPDX-License-Identifier: Apache-2.0
"""Determines the backends that a runtime can use, and creates their contexts."""

from __future__ import annotations

import logging

from ferrule._frozen import frozen
from ferrule.backends.backend import Backend
from ferrule.backends.capability import PROTECTED_CONTENT_ALLOCATION, has_capability
from ferrule.backends.context import (
    BackendUnavailableError,
    CreationOptions,
    CustomAllocator,
    RuntimePart,
)
from ferrule.backends.contract import PLUGIN_FAULTS, described, pass_on_interrupts
from ferrule.backends.device import BackendId
from ferrule.backends.guarded import guarded
from ferrule.backends.origin import BackendRow
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.tensor_handle import MemorySource
from ferrule.errors import FerruleError, unknown_name

_LOGGER = logging.getLogger(__name__)


@frozen
class Admitted(RuntimePart):
    """The objects that a runtime keeps for a usable backend; the backend object itself is not kept."""

    allocator: CustomAllocator | None


def admit_all(
    registry: BackendRegistry, options: CreationOptions
) -> tuple[dict[BackendId, Admitted], tuple[BackendRow, ...]]:
    """Try every backend; return the usable ones, and a row for every backend, with the reason if it is not usable.

    The registry leaves unusable backends out. FerruleError if the options name an unknown backend.
    """
    known = registry.ids()
    for name in (*options.custom_allocators, *options.backend_options):
        if name not in known:
            raise unknown_name("backend", name, known)
    admitted = {}
    rows = []
    refusals = registry.refusals()
    for backend_id in known:
        reason = ""
        try:
            admitted[backend_id] = _admit(guarded(registry.create(backend_id)), options)
        except FerruleError as error:
            reason = str(error)
        except PLUGIN_FAULTS as error:
            pass_on_interrupts(error)
            reason = described(error)
        rows.append(BackendRow(id=backend_id, origin=registry.origin(backend_id), reason=reason))
        if reason:
            _LOGGER.info("backend '%s' is not usable: %s", backend_id, reason)
            registry.leave_out(backend_id, reason)
    return admitted, (*rows, *refusals)


def _admit(backend: Backend, options: CreationOptions) -> Admitted:
    allocator = options.custom_allocators.get(backend.id)
    reason = _memory_refusal(backend, allocator, protected=options.protected_mode)
    if reason:
        raise BackendUnavailableError(reason)
    context = backend.context(options)
    profiling = backend.profiling_context(options) if options.profiling else None
    if profiling is not None and not profiling.enable_profiling(enabled=True):
        _LOGGER.warning("backend '%s' does not switch its profiling on", backend.id)
        profiling = None
    return Admitted(context=context, profiling=profiling, allocator=allocator)


def _memory_refusal(backend: Backend, allocator: CustomAllocator | None, *, protected: bool) -> str:
    """Return the reason why a backend cannot work with the memory that it is given; "" if it can."""
    capable = has_capability(backend.capabilities(), PROTECTED_CONTENT_ALLOCATION)
    if allocator is None:
        return "protected mode needs a custom allocator for it" if protected else ""
    gives_protected = MemorySource.DMA_BUF_PROTECTED in allocator.source
    if (protected or gives_protected) and not capable:
        return f"it lacks the capability {PROTECTED_CONTENT_ALLOCATION}"
    if protected and not gives_protected:
        return f"protected mode needs protected memory, its custom allocator gives {allocator.source.name}"
    refusal = backend.use_custom_memory_allocator(allocator)
    return f"it refuses its custom allocator: {refusal}" if refusal else ""
