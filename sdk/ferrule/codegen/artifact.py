# SPDX-License-Identifier: Apache-2.0
"""What the code generator hands out: files, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.backends import BackendId
from ferrule.backends.firmware import Contribution
from ferrule.codegen.storage import StoragePlan
from ferrule.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecord:
    """One operator of the executor, in the order of execution."""

    layer: str
    type: str
    kernel: str
    """Short name of the kernel, "view" where nothing is done, "copy" where a view had to become one."""
    backend: BackendId
    device: str
    """Name of the device instance; the backend's id where there are none."""
    macs: int
    constant_bytes: int
    """Flash that its weights and tables take."""
    scratch_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A model as C, and what its user needs to know."""

    graph: Graph
    symbol: str
    """The C identifier of the model; files and functions are called ferrule_<symbol>..."""
    digest: str
    """SHA-256 of the graph."""
    files: Mapping[str, str]
    """Generated text by file name."""
    sources: tuple[str, ...]
    """C files below the resources' root that the generated ones call."""
    include_dirs: tuple[str, ...]
    """Folders below the resources' root."""
    contributions: tuple[Contribution, ...]
    """What comes from the folders of backends, one per folder, sorted by its name."""
    operators: tuple[OperatorRecord, ...]
    storage: StoragePlan
    workspace_bytes: int
    """The arena, kernel scratch included."""
