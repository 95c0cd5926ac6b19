# SPDX-License-Identifier: Apache-2.0
"""The figure of a model's arena: the one that `inspect`, `--fit` and reports of runs state, and the C declares."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.codegen import Artifact
from ferrule.firmware.job import Job
from ferrule.memory import certify


@frozen
class ArenaPart:
    """The arena that a model's C declares for a board: its tensors, and the scratch of its kernels.

    Other boards and goals have other kernels, and so other arenas.
    """

    board: str
    goal: str
    size_bytes: int
    """In all memories together, without the state."""
    certificate: str
    """The quality of that size: "optimal", or its distance from a proved lower bound, also for the order of layers."""
    bound_bytes: int
    """Proved lower bound on the arena of these tensors and this scratch, in this order of layers."""
    activation_bytes: int
    """The least arena found for the tensors alone, without scratch."""
    activation_certificate: str
    """The quality of `activation_bytes`, in the same form."""
    state_bytes: int = 0
    """The bytes besides that live from one run to the next."""

    @property
    def bounds(self) -> str:
        """What the size is to be compared with, in words."""
        return (
            f"proved lower bound {self.bound_bytes:,} B; without the kernels' scratch {self.activation_bytes:,} B "
            f"({self.activation_certificate})"
        )


def arena_of(artifact: Artifact, job: Job) -> ArenaPart:
    """Return the figure of the arena of a model that was generated for a job."""
    storage, ordering = artifact.storage, artifact.ordering
    regions = [storage.plan.region(region.name) for region in storage.arenas]
    bound = sum(region.bound_bytes for region in regions)
    activations = sum(region.activation_peak_bytes for region in regions)
    activation_bound = sum(region.activation_bound_bytes for region in regions)
    return ArenaPart(
        board=job.load_board().name,
        goal=str(job.goal),
        size_bytes=artifact.workspace_bytes,
        certificate=ordering.qualify(certify(artifact.workspace_bytes, bound), artifact.workspace_bytes),
        bound_bytes=bound,
        activation_bytes=activations,
        activation_certificate=ordering.qualify(certify(activations, activation_bound), activations),
        state_bytes=artifact.state_bytes,
    )
