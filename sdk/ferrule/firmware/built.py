# SPDX-License-Identifier: Apache-2.0
"""A firmware with all that it was made from, which reports describe."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.boards import Board
from ferrule.codegen import Artifact, Program
from ferrule.firmware.image import Image
from ferrule.firmware.job import Job
from ferrule.firmware.project import Project
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork


@dataclass(frozen=True, kw_only=True)
class BuiltFirmware:
    """A network compiled for a board, alone or with others in one firmware."""

    network: Network
    """The network before optimisation; its numpy reference is the standard for the firmware's outputs."""
    optimized: OptimizedNetwork
    """The network divided over backends; `messages` states which backends did not receive a layer, and why."""
    board: Board
    artifact: Artifact
    program: Program
    """All models of the firmware, this one among them."""
    project: Project
    image: Image
    job: Job
    """The job that `compile` was called with."""
    toolchain: str
    """The name of the toolchain that compiled it."""
    toolchain_version: str
    """The compiler's version, as one line."""
    build_s: float
    """Wall-clock seconds of the build."""
