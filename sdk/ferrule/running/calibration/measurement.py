# SPDX-License-Identifier: Apache-2.0
"""Measures the programs of a calibration over the link, on a real board or on an emulated one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.errors import FerruleError
from ferrule.firmware import BuiltFirmware
from ferrule.firmware.micro_programs import Group, MicroProgram, digest, micro_programs
from ferrule.interface import either
from ferrule.link import CounterSource, LinkError, LinkSession
from ferrule.network.samples import pattern_sample
from ferrule.progress import Progress, Step, say_nothing
from ferrule.running import claims

LEAST_CYCLES = 200
"""Cycles of the shortest layer that is compared: of a shorter one, the reading of the counter is a part."""
THE_FIRMWARE = f"the firmware that {either('--keep', 'calibration_firmware')} has written"
"""Of a hint: what the board has to run."""
Counts = Mapping[str, int]
"""Cycles by program."""


@frozen
class Programs:
    """What the firmware of a calibration runs: micro-programs, and the layers of a network."""

    micro: tuple[MicroProgram, ...]
    layers: tuple[str, ...]

    @classmethod
    def of(cls, firmware: BuiltFirmware) -> Programs:
        """Return the programs of a firmware with the application `calibration`."""
        layers = tuple(operator.layer for operator in firmware.artifact.operators)
        return cls(micro=micro_programs(firmware.board), layers=layers)

    @property
    def groups(self) -> dict[str, Group]:
        """The group of each program, by name, in the order in which they run."""
        found = {each.name: each.group for each in self.micro}
        return found | {layer_name(each): Group.LAYERS for each in self.layers}


def layer_name(layer: str) -> str:
    """Return the name of a layer among the programs."""
    return f"layer {layer}"


def measure(
    link: LinkSession,
    firmware: BuiltFirmware,
    *,
    repeats: int,
    names: Collection[str] | None = None,
    progress: Progress = say_nothing,
    phase: str = "measuring",
) -> Counts:
    """Return the least cycles of each program, or of those with some names, in `repeats` runs by the board's counter.

    Raises:
        FerruleError: the board holds another firmware, or has no counter of cycles.
        LinkError: the link fails.
    """
    programs = Programs.of(firmware)
    found: dict[str, int] = {}
    groups = {name: group for name, group in programs.groups.items() if names is None or name in names}
    selected = np.array([each.name in groups for each in programs.micro], np.uint8)
    if link.model_count() < 2:
        raise _other(firmware.board)
    wanted = [index for index, is_wanted in ((0, Group.LAYERS in groups.values()), (1, selected.any())) if is_wanted]
    for done, index in enumerate(wanted):
        progress(Step(phase=phase, done=done * repeats, total=len(wanted) * repeats))
        link.choose_model(index)
        info = link.model_info()
        if info.counter is CounterSource.NONE:
            raise FerruleError(
                f"board {firmware.board.name} has no counter: neither the cycle counter of its DWT nor SysTick counts",
                hint="a calibration needs one of them at the core's clock; does a debugger or an emulator hold it?",
            )
        if index == 0:
            claims.check_claims(firmware, info, link.build_info())
            run, sample = [layer_name(each) for each in programs.layers], pattern_sample(firmware.network.inputs)
        elif info.input_hash != digest(programs.micro) or info.operator_count != len(programs.micro):
            raise _other(firmware.board)
        else:
            run, sample = [each.name for each in programs.micro], [selected]
        for repeat in range(repeats):
            counts = link.run(sample, profile=True).counters
            for name, count in zip(run, counts, strict=True):
                found[name] = min(count, found.get(name, count))
            progress(Step(phase=phase, done=done * repeats + repeat + 1, total=len(wanted) * repeats))
    return _plausible(found, groups)


def _plausible(found: Mapping[str, int], groups: Mapping[str, Group]) -> Counts:
    """Return the counts that can be compared; LinkError if a program that takes thousands of cycles took none."""
    for name, group in groups.items():
        if group is not Group.LAYERS and found[name] < LEAST_CYCLES:
            raise LinkError(f"the board states that the program {name} took {found[name]} cycles: it cannot have run")
    return {
        name: found[name] for name, group in groups.items() if group is not Group.LAYERS or found[name] >= LEAST_CYCLES
    }


def _other(board: Board) -> FerruleError:
    return FerruleError(
        f"the firmware on board {board.name} is not the one of this calibration",
        hint=f"load {THE_FIRMWARE}; another board, toolchain or version of ferrule needs another",
    )
