# SPDX-License-Identifier: Apache-2.0
"""Runs in which buffers have the lifetimes that are asked for, by which plans are replayed."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.memory import Request, Schedule, Step


def schedule_of_lifetimes(requests: Sequence[Request]) -> Schedule:
    """Return a run with exactly the requested lifetimes: written at the first step, read at each later one."""
    count = max((request.lifetime.last for request in requests), default=-1) + 1
    return Schedule(
        steps=tuple(
            Step(
                name=f"step {number}",
                reads=tuple(r.name for r in requests if r.lifetime.first < number <= r.lifetime.last),
                writes=tuple(r.name for r in requests if r.lifetime.first == number),
            )
            for number in range(count)
        )
    )
