# SPDX-License-Identifier: Apache-2.0
"""The arena that several models of one program share: its memory, and the interface of its lock."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ferrule.codegen.artifact import Artifact
from ferrule.codegen.plan import memory_of
from ferrule.dom import (
    ArrayType,
    Function,
    IncludeKind,
    Linkage,
    Module,
    Scalar,
    Section,
    Variable,
    includes,
)

_LOCK_DOC = (
    "Lock the arena; ferrule_<model>_run_shared() calls it. For code that uses the arena itself, such as a run with a "
    "deadline in ferrule_<model>_default_memory. It waits for another thread for FERRULE_ARENA_TIMEOUT_MS at most, by "
    "default 1000; define it for all files to change it.\n@retval FERRULE_OK\n"
    "@retval FERRULE_ERR_TIMEOUT another thread has had the arena for that time\n"
    "@retval FERRULE_ERR_BUSY this thread has the arena, or any code without an operating system\n"
    "@retval FERRULE_ERR_INTERRUPT the caller is an interrupt of an operating system"
)


def arena_name(symbol: str) -> str:
    """Return the prefix of the names of a program's shared arena, and the name of its files."""
    return f"ferrule_{symbol}_arena"


def arena_sizes(artifacts: Sequence[Artifact]) -> dict[str, int]:
    """Return the bytes of a shared arena by region: the largest of those that the models need."""
    sizes: dict[str, int] = {}
    for storage in (artifact.storage for artifact in artifacts):
        for region in storage.arenas:
            peak_bytes = storage.plan.region(region.name).peak_bytes
            sizes[region.name] = max(sizes.get(region.name, 1), peak_bytes)
    return sizes


def arena_module(name: str, artifacts: Sequence[Artifact]) -> Module:
    """Return the module of the arena of these models: in each memory, the largest part that one of them needs."""
    storages = [artifact.storage for artifact in artifacts]
    regions = {region.name: region for storage in storages for region in storage.arenas}
    variables = [
        Variable(
            f"{name}_{region}",
            ArrayType(Scalar.UINT8, size_bytes),
            linkage=Linkage.EXTERNAL,
            section=Section.WORKSPACE,
            memory=memory_of(regions[region]),
            alignment=math.lcm(*(each.alignment(a) for each in storages for a in each.arenas if a.name == region)),
            doc="The workspace of the model that runs.",
        )
        for region, size_bytes in arena_sizes(artifacts).items()
    ]
    return Module(
        name=name,
        doc=f"The workspace that {len(artifacts)} models share, one running at a time.",
        interface_includes=(
            *includes("ferrule/status.h"),
            *includes("stdint.h", kind=IncludeKind.STANDARD),
        ),
        interface=(
            *variables,
            Function(f"{name}_lock", Scalar.INT32, linkage=Linkage.EXTERNAL, doc=_LOCK_DOC),
            Function(
                f"{name}_unlock",
                Scalar.VOID,
                linkage=Linkage.EXTERNAL,
                doc="Unlock the arena, in the thread that has locked it.",
            ),
        ),
        implementation_includes=includes("ferrule/section.h"),
        implementation=tuple(variables),
    )
