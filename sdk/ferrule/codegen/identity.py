# SPDX-License-Identifier: Apache-2.0
"""The identity of a firmware: digests of its model, its plan and its sources, as data and as generated C."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.codegen.storage import StoragePlan
from ferrule.codegen.writer import Writer
from ferrule.dom import (
    ArrayData,
    Const,
    Expression,
    Identifier,
    Linkage,
    Module,
    Section,
    String,
    StructType,
    Variable,
    call_of,
    designated,
    includes,
)

DIGEST_BYTES = 16
"""FERRULE_DIGEST_BYTES in ferrule/identity.h."""


@frozen
class Identity:
    """What a firmware is generated from; each digest is the first half of a SHA-256, in hexadecimal."""

    model: str
    """Of the network as it was given."""
    plan: str
    """Of its division over devices, the order of its layers, and the places of its tensors."""
    sources: str
    """Of the C of the firmware: of an artifact, the generated files alone; of a project, also the files of all
    contributions and of the platform, with the linker script, but not those that the user may edit."""
    platform: str = ""
    board: str = ""


def shortened(digest: str) -> str:
    """Return the part of a SHA-256 in hexadecimal that an identity holds."""
    return digest[: 2 * DIGEST_BYTES]


def plan_digest(graph_digest: str, operators: Sequence[object], storage: StoragePlan) -> str:
    """Return the digest of a plan: of the divided graph, its operators in order, and the places in memory."""
    placements = sorted((name, place.offset) for name, place in storage.plan.placements.items())
    regions = [(region.region, region.peak_bytes) for region in storage.plan.regions]
    facts = (graph_digest, operators, placements, regions, sorted(storage.views.items()))
    return shortened(hashlib.sha256(repr(facts).encode()).hexdigest())


def sources_digest(files: Mapping[str, bytes]) -> str:
    """Return the digest of files by path."""
    sha = hashlib.sha256()
    for name in sorted(files):
        sha.update(f"{name}\0{hashlib.sha256(files[name]).hexdigest()}\n".encode())
    return shortened(sha.hexdigest())


def identity_name(symbol: str) -> str:
    """Return the name of the variable and, without a suffix, of the files of a model's identity."""
    return f"ferrule_{symbol}_identity"


def identity_files(symbol: str, identity: Identity, banner: str, writer: Writer) -> dict[str, str]:
    """Return the header and the source that define `ferrule_<symbol>_identity`, by file name."""
    fields: dict[str, Expression] = {
        "magic": Identifier("FERRULE_IDENTITY_MAGIC"),
        "version": Identifier("FERRULE_IDENTITY_VERSION"),
        "model": _digest(identity.model),
        "plan": _digest(identity.plan),
        "sources": _digest(identity.sources),
        "text": call_of("FERRULE_IDENTITY_TEXT", String(identity.platform), String(identity.board)),
    }
    variable = Variable(
        identity_name(symbol),
        Const(StructType("ferrule_identity")),
        value=designated(fields),
        linkage=Linkage.EXTERNAL,
        section=Section.IDENTITY,
        doc="What this firmware is; `ferrule verify` and the link read it.",
    )
    module = Module(
        name=variable.name,
        doc="The identity of the firmware.",
        interface_includes=includes("ferrule/identity.h"),
        interface=(variable,),
        implementation_includes=includes("ferrule/section.h"),
        implementation=(variable,),
    )
    return writer.files(module, banner)


def _digest(text: str) -> ArrayData:
    return ArrayData(np.frombuffer(bytes.fromhex(text), np.uint8))
