# SPDX-License-Identifier: Apache-2.0
"""The input of generation: a graph, how each of its layers becomes C, and the memories of the board."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ferrule.backends import Device, Price, Target
from ferrule.backends.firmware import FirmwareTarget
from ferrule.codegen.c_writer import C_WRITER
from ferrule.codegen.writer import Writer
from ferrule.graph import Graph
from ferrule.memory import Region

CORE = "cpu"
"""The core among the bus masters, as in board.toml."""
REGION = "sram"
"""The region of the workspace, and the executor's variable for it."""
STATE = "state"
"""The region of the states, and the executor's variable for it."""
_SHARED = "shared_"


def shared_region(memory: str, size_bytes: int, line_bytes: int, masters: frozenset[str]) -> Region:
    """Return the region of a board's memory besides that of the workspace; its name is a C variable of the executor."""
    return Region(name=_SHARED + memory, size_bytes=size_bytes, line_bytes=line_bytes, reachable_by=masters)


def memory_of(region: Region) -> str:
    """Return the name of the board's memory of a region that `shared_region` returned; "" for other regions."""
    return region.name.removeprefix(_SHARED) if region.name.startswith(_SHARED) else ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What `generate` makes C of; the steps of generation return values that contain it."""

    graph: Graph
    firmware: Mapping[str, FirmwareTarget]
    """By layer: the firmware face of its backend."""
    targets: Mapping[str, Target]
    """By layer: the target that it runs on."""
    workspace_bytes: int
    """The memory available for the workspace on the board."""
    line_bytes: int = 0
    """The size of a line of the data cache in front of the workspace; 0 if there is none."""
    masters: frozenset[str] | None = None
    """The bus masters that reach the workspace; None for all."""
    others: Sequence[Region] = ()
    """The board's other memories for tensors that devices use, made by `shared_region`."""
    named: Sequence[Region] = ()
    """The memories besides that of the workspace that scratch may name, made by `shared_region`."""
    workspace: str = ""
    """The name of the workspace's memory on the board; "" if scratch may not name it."""
    pool: Sequence[Device] = ()
    """The devices of pools, with their bindings."""
    overlap: bool = True
    """Whether devices that can do so work beside the core and one another."""
    arena: str = ""
    """The prefix of the names of an arena that several models share, `arena_name(...)`; "" for a workspace of its
    own."""
    model: Graph | None = None
    """The network as it was given, before it was divided; None for the graph itself."""
    writer: Writer = C_WRITER
    """The language."""
    limited: bool = True
    """Whether tensors that do not fit are an error; otherwise the memories are taken to be large if they do not."""

    @cached_property
    def core(self) -> Region:
        """The region of the workspace."""
        every = frozenset({CORE, *(target.device.name for target in self.targets.values())})
        return Region(
            name=REGION,
            size_bytes=self.workspace_bytes,
            reachable_by=every if self.masters is None else self.masters,
            line_bytes=self.line_bytes,
        )

    @property
    def unlimited(self) -> Plan:
        """The same plan for a board with large memories."""
        others, named = (
            tuple(replace(each, size_bytes=sys.maxsize) for each in regions) for regions in (self.others, self.named)
        )
        return replace(self, workspace_bytes=sys.maxsize, others=others, named=named, limited=True)

    @property
    def memories(self) -> tuple[Region, ...]:
        """The regions that the core shares with devices, the workspace first."""
        return (self.core, *self.others)

    @property
    def price(self) -> Price:
        """What the user pays for bytes, which is the same for all targets."""
        return next((target.price for target in self.targets.values()), Price())

    @cached_property
    def names(self) -> Mapping[str, Region]:
        """The memories that scratch may name."""
        return {memory_of(each): each for each in self.named} | ({self.workspace: self.core} if self.workspace else {})
