# SPDX-License-Identifier: Apache-2.0
"""The request: what a caller asks of a run of a firmware, in one value that every step reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.codegen import Program
from ferrule.devices import Fault
from ferrule.emulation import (
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
from ferrule.progress import Progress, say_nothing

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_OPTIONS = EngineOptions()


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
    progress: Progress = say_nothing

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
        if self.locate and name == "serial":
            raise FerruleError(
                "the first differing layer can't be located on a real board: that needs a second firmware on it",
                hint="run the model on an emulated board",
            )
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
