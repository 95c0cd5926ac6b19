# SPDX-License-Identifier: Apache-2.0
"""The backends that are shipped, by id."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferrule.backends.backend import Backend, BackendId
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.errors import unknown_name

SHIPPED: Mapping[BackendId, Callable[[], Backend]] = {CpuAcc.id: CpuAcc}


def backend_ids() -> tuple[BackendId, ...]:
    """Return the ids of all backends."""
    return tuple(SHIPPED)


def create_backend(name: str) -> Backend:
    """Return a new object of the backend of that id; FerruleError lists the near ones if there is none."""
    factory = SHIPPED.get(BackendId(name))
    if factory is None:
        raise unknown_name("backend", name, SHIPPED)
    return factory()
