# SPDX-License-Identifier: Apache-2.0
"""The request: what a caller asks of a run of a firmware, in one value that every step reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.codegen import Program
from ferrule.devices import Fault
from ferrule.emulation import (
    Clock,
    Engine,
    EngineOptions,
    engine,
    engine_names,
    fitting_engine,
    require_gdb,
    require_ownership,
)
from ferrule.emulation.attached import check_faults
from ferrule.errors import FerruleError
from ferrule.interface import name_of, option
from ferrule.progress import Progress, say_nothing
from ferrule.report.elapsed import TimeQuestions
from ferrule.timing.usage import Battery, Rate

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_OPTIONS = EngineOptions()
SERIAL = "serial"
"""The engine of real boards, whose counter is the chip's."""
_TIME = ("deadline_s", "rate", "battery")


@frozen
class RunRequest:
    """How a firmware is run; every field has a usable default."""

    engine: str | None = None
    """The engine's name; None for one that can run the board."""
    options: EngineOptions = DEFAULT_OPTIONS
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Limit of one inference, in seconds in which the engine works on it or sleeps; not those in which it waits for a
    processor."""
    source: str | None = None
    """The origin of the inputs, as the report states it; None for "pattern" or "arrays"."""
    trace_devices: bool = False
    """Whether the report has every device call."""
    faults: Mapping[str, Fault] = field(default_factory=dict)
    """The faults to inject into devices' models, by device."""
    locate: bool = False
    """Whether the first layer that differs from the reference is searched with a second firmware."""
    check_ownership: bool = False
    """Whether every access to the workspace is compared with the plan."""
    reset_each: bool | Sequence[bool] = False
    """Whether each sample, or each for which a list says so, begins with the model's initial state."""
    real: bool = False
    """Whether inputs and outputs are real numbers."""
    clock: Clock | None = None
    """What time is counted in; None for cycles if the request asks for time (a deadline, a rate or a battery) on an
    engine that counts them by a model, and for instructions otherwise."""
    deadline_s: Fraction | float | None = None
    """The most seconds that an inference may take on the board; a report states whether it is kept."""
    rate: Rate | None = None
    """How often an inference begins, which it must keep up with, too."""
    battery: Battery | None = None
    """What the board runs from at this rate; a report states how long it lasts."""
    progress: Progress = say_nothing

    def __post_init__(self) -> None:
        if self.deadline_s is not None:
            try:
                exact = Fraction(str(self.deadline_s))
            except ValueError:
                exact = Fraction(0)
            if exact <= 0:
                raise FerruleError(f"the deadline is {self.deadline_s!r}, expected seconds above 0")
            object.__setattr__(self, "deadline_s", exact)
        if self.battery is not None and self.rate is None:
            raise FerruleError(
                f"the battery {self.battery} needs a rate of inferences to last for", hint=option("rate", "10/s")
            )

    @property
    def questions(self) -> TimeQuestions:
        """What the request asks about time."""
        assert not isinstance(self.deadline_s, float)
        return TimeQuestions(deadline_s=self.deadline_s, rate=self.rate, battery=self.battery)

    def clock_for(self, board: Board, chosen: Engine) -> Clock:
        """Return the clock of a machine.

        Raises:
            FerruleError: the engine has not the clock on this board, or the request asks for time, which only cycles
                tell, or for a battery of a board that states no currents.
        """
        if self.battery is not None and board.energy is None:
            raise FerruleError(
                f"how long the battery {self.battery} lasts is not known: board {board.name} states no currents",
                hint="docs/boards.md describes [energy] of board.toml",
            )
        asks = next((name for name in _TIME if getattr(self, name) is not None), None)
        clock = self.clock or Clock.INSTRUCTIONS
        if asks is None or chosen.name == SERIAL:
            chosen.check_clock(board, clock)
            return clock
        refusal = chosen.refuses_clock(board, Clock.CYCLES)
        if self.clock is Clock.INSTRUCTIONS:
            refusal = "the clock instructions states no milliseconds"
        if refusal is not None:
            raise FerruleError(
                f"the {asks.removesuffix('_s')} needs the time of an inference, which cannot be told: {refusal}",
                hint=f"leave out {name_of('clock')}" if self.clock is Clock.INSTRUCTIONS else None,
            )
        return Clock.CYCLES

    def engine_for(self, board: Board, program: Program | None = None) -> Engine:
        """Return the engine that can run the board as requested; `program` is None before the firmware is generated.

        Raises:
            MissingToolError: the engine is not installed; the hint gives the command that installs it.
            FerruleError: the engine cannot run the board or attach the models of the devices, an option is missing or
                not supported, or a fault is for a device without a model.
        """
        if program is not None:
            check_faults(program, self.faults)
        name = self.engine or fitting_engine(board)
        chosen = engine_for(name, board, program)
        lacking = chosen.lacks(self.options)
        if lacking is not None:
            raise lacking
        if self.options.gdb is not None:
            require_gdb(name)
        if self.check_ownership:
            if program is not None and program.single is None and program.devices:
                raise FerruleError(
                    "ownership can't be checked in a firmware with several models and devices: the other models' runs "
                    "announce layers, too",
                    hint="check each model in a firmware of its own",
                )
            require_ownership(name)
        if self.locate and name == SERIAL:
            raise FerruleError(
                "the first differing layer can't be located on a real board: that needs a second firmware on it",
                hint="run the model on an emulated board",
            )
        self.clock_for(board, chosen)
        return chosen


def engine_for(name: str, board: Board, program: Program | None = None) -> Engine:
    """Return an engine that can run a board, and attach the models of a program's devices; raises as the method."""
    chosen = engine(name)
    missing = chosen.missing()
    if missing is not None:
        raise missing
    devices = () if program is None else program.devices
    models = [use.name for use in devices if use.driver.model is not None]
    reason = chosen.refuses(board, models)
    if reason is not None:
        able = [each for each in engine_names() if engine(each).refuses(board, models) is None]
        raise FerruleError(
            f"engine {name} cannot run board {board.name}: {reason}",
            hint=f"engines that can: {', '.join(able)}" if able else None,
        )
    return chosen
