# SPDX-License-Identifier: Apache-2.0
"""Where a firmware's runs begin, announce their layers and wait for devices, so that an engine can time them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from ferrule._frozen import frozen
from ferrule.codegen import Artifact, Program
from ferrule.emulation.ownership import NEXT
from ferrule.firmware import Image

WAITS = ("ferrule_device_finish", "ferrule_device_wait", "ferrule_platform_wait")
"""The functions in which a thread waits for a device, whose handle is the first argument; they may call one another."""
SUBMITS = ("ferrule_device_submit", "ferrule_device_submit_copy_to", "ferrule_device_submit_copy_from")
"""The functions that begin a command of the device of their first argument; the first of WAITS collects the oldest."""


@frozen
class DurationPlan:
    """What an engine needs to time the runs of a firmware's models; each address is that of a function."""

    runs: tuple[int, ...] = ()
    """The functions of the executors, each of which is a run; empty if no runs can be told."""
    next: int = 0
    """The function that announces layers; 0 if there is none."""
    waits: tuple[int, ...] = ()
    submits: tuple[int, ...] = ()
    finish: int = 0
    """The one of `waits` that collects the oldest command; 0 if there is none."""
    devices: Mapping[int, str] = field(default_factory=dict)
    """The names of devices, by the addresses of their handles."""


def duration_plan(program: Program, image: Image) -> DurationPlan:
    """Return the plan of a firmware's models."""
    devices = program.devices
    handles = {image.find(f"{use.name}_device"): use.device.name for use in devices}
    handles.pop(0, None)
    return DurationPlan(
        runs=tuple(address for each in program.artifacts for address in _runs(each, image)),
        next=image.find(NEXT) if devices else 0,
        waits=_found(image, WAITS) if devices else (),
        submits=_found(image, SUBMITS) if devices else (),
        finish=image.find(WAITS[0]) if devices else 0,
        devices=handles,
    )


def _runs(artifact: Artifact, image: Image) -> Iterator[int]:
    prefix = f"ferrule_{artifact.symbol}"
    yield from _found(image, (f"{prefix}_run_shared" if artifact.arena else f"{prefix}_run", f"{prefix}_run_until"))


def _found(image: Image, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(filter(None, map(image.find, names)))
