# SPDX-License-Identifier: Apache-2.0
"""What an inference takes of a board, from planned costs: time, energy, and the share of a rate, without a build."""

from __future__ import annotations

from dataclasses import field, replace

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.codegen import Artifact
from ferrule.errors import FerruleError
from ferrule.firmware.planned_time import PlannedTime, planned_time
from ferrule.timing.energy import NO_ERROR, EnergyRange, Range, battery_life, digits_text, energy_of, range_text
from ferrule.timing.evidence import error_text, model_error
from ferrule.timing.usage import Battery, Rate


@frozen
class Usage:
    """How often a board is to run the model, and from which battery; None for each that is not asked."""

    rate: Rate | None = None
    battery: Battery | None = None


NOTHING_ASKED = Usage()


@frozen
class BoardUse:
    """What an inference takes of a board. None of these numbers is measured on it."""

    clock_hz: int
    instructions: int | None
    """Planned instructions of the core; None if no kernel of the model has an estimate."""
    cycles: int | None = None
    """Planned cycles; None if the core has no table of its kernels."""
    milliseconds: float | None = None
    error: Range | None = None
    """The range of the measured error of the model of the core's cycles, as fractions of them; None if none was."""
    energy_mj: Range | None = None
    """Millijoules of an inference; None if the board states no currents, or without cycles."""
    rate: str = ""
    """The rate that was asked for; empty if none was."""
    busy: float | None = None
    """The share of the time that inferences at this rate take, with the error counted against it; None if either is not
    known."""
    battery_hours: dict[str, Range] = field(default_factory=dict)
    """How long the asked battery lasts, by what the chip does between inferences: "asleep" or "stopped"."""
    assumed: tuple[str, ...] = ()
    """What parts of the figures rest on instead of measurements and sources; usually empty."""

    @property
    def too_slow(self) -> bool:
        """Whether inferences at the asked rate take longer than there is time."""
        return self.busy is not None and self.busy > 1

    @property
    def time_text(self) -> str:
        """The planned time with its error, or else the instructions."""
        if self.milliseconds is None:
            return "" if self.instructions is None else f"{self.instructions:,} instructions"
        if self.error is None:
            return f"{digits_text(self.milliseconds)} ms, no measured error"
        return f"{digits_text(self.milliseconds)} ms, {error_text(*self.error)}"

    @property
    def energy_text(self) -> str:
        """The energy of an inference; empty if it is not known."""
        return "" if self.energy_mj is None else f"{range_text(self.energy_mj)} mJ"

    @property
    def rate_text(self) -> str:
        """The share of the time that is taken at the asked rate, and the life of the battery; empty without either."""
        if self.busy is None:
            return "not known: no planned time" if self.rate else ""
        hours = (f"{range_text((low / 24, high / 24))} days {way}" for way, (low, high) in self.battery_hours.items())
        return "\n".join((f"{self.busy:.3g} times too slow" if self.too_slow else f"{self.busy:.0%} busy", *hours))


def board_use(artifact: Artifact, board: Board, usage: Usage) -> BoardUse:
    """Return what an inference of a model takes of a board; the layers are to be generated for its core."""
    known = [work.instructions for record in artifact.operators for work in record.works]
    stated = [each for each in known if each is not None]
    plan = planned_time(artifact, board)
    rate = "" if usage.rate is None else str(usage.rate)
    use = BoardUse(clock_hz=board.clock_hz, instructions=sum(stated) if stated else None, rate=rate)
    return use if plan is None else _timed(use, plan, artifact, board, usage)


def _timed(use: BoardUse, plan: PlannedTime, artifact: Artifact, board: Board, usage: Usage) -> BoardUse:
    measured = model_error(board.cpu.type, board.timing)
    error = None if measured is None else (measured.low, measured.high)
    longest = plan.cycles * (1 + (0.0 if error is None else max(error[1], 0.0)))
    energy = _energy(plan, artifact, board, error or NO_ERROR)
    busy = None if usage.rate is None else usage.rate.busy(longest, board.clock_hz)
    lives, unknown = ({}, ()) if busy is None or busy > 1 else _lives(plan, energy, board, usage)
    unstated = () if energy is None else energy.unstated
    return replace(
        use,
        cycles=plan.cycles,
        milliseconds=plan.milliseconds,
        error=error,
        energy_mj=None if energy is None else (energy.low_mj, energy.high_mj),
        busy=busy,
        battery_hours=lives,
        assumed=(
            *plan.assumed,
            *(f"board {board.name} does not state the current of {each}" for each in unstated),
            *unknown,
        ),
    )


def _lives(
    plan: PlannedTime, energy: EnergyRange | None, board: Board, usage: Usage
) -> tuple[dict[str, Range], tuple[str, ...]]:
    """Return how long the asked battery lasts, and why that is not known."""
    if board.energy is None or energy is None or usage.rate is None or usage.battery is None:
        return {}, ()
    try:
        lives = battery_life(
            board.energy,
            energy,
            clock_hz=board.clock_hz,
            elapsed_cycles=plan.cycles,
            rate=usage.rate,
            battery=usage.battery,
        )
    except FerruleError as error:
        return {}, (f"board {board.name}: {error}",)
    return {each.between: each.hours for each in lives}, ()


def _energy(plan: PlannedTime, artifact: Artifact, board: Board, error: Range) -> EnergyRange | None:
    """Return the energy of a planned inference, in which the core sleeps while it waits for devices."""
    on_core, devices = 0, dict[str, int]()
    for record, layer in zip(artifact.operators, plan.layers, strict=True):
        if record.works:
            on_core += layer.cycles
        elif layer.cycles:
            devices[record.device] = devices.get(record.device, 0) + layer.cycles
    return energy_of(
        board.energy,
        clock_hz=board.clock_hz,
        work_cycles=min(on_core, plan.cycles),
        asleep_cycles=max(plan.cycles - on_core, 0),
        device_cycles=devices,
        error=error,
    )
