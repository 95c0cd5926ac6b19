# SPDX-License-Identifier: Apache-2.0
"""`ferrule run firmware.elf`: a user's own firmware on a board, with its console on standard output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule._frozen import frozen
from ferrule.cli.console import STDOUT, echo, write_json
from ferrule.cli.options import BOARD, JobOptions, engine_name
from ferrule.cli.parameters import typed
from ferrule.errors import FerruleError
from ferrule.reading import open_file

if TYPE_CHECKING:
    from ferrule.emulation import EngineError
    from ferrule.firmware import Image
    from ferrule.running import RunRequest
    from ferrule.testing import Board

MAGIC = b"\x7fELF"
OWN_OPTIONS = frozenset(
    {
        *("models", "options", "board", "devices", "config", "engine", "port", "baud", "json"),
        *("timeout_s", "gdb", "faults", "quiet", "until"),
    }
)
"""The parameters of `ferrule run` that apply to a user's own firmware."""
WALL_FACTOR = 60.0
"""Seconds of the host that an engine has for a second of the board, before the run is ended."""


@frozen
class CrashPart:
    """A fault of the core or of a device."""

    reason: str
    registers: dict[str, int]
    """By name; empty if they are unknown."""


@frozen
class ConsoleDocument:
    """What a user's own firmware has done on a board."""

    kind: str = "console"
    elf: str
    board: str
    engine: str
    end: str
    """matched (--until), exited (semihosting), crashed, or stopped; the reason for the last is in `why`."""
    why: str
    """The end in words."""
    exit_status: int | None
    """The status that the firmware gave by semihosting; None without one."""
    instructions: int | None
    """Instructions that the core has executed; None if the engine cannot tell."""
    console: str
    """The text that the firmware has printed."""
    contract: str = ""
    """Why the contract of the devices was not checked; empty without devices."""
    crash: CrashPart | None


def is_elf(path: Path) -> bool:
    """Return whether a file begins as an ELF file does; False if it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def check_options(context: click.Context) -> None:
    """Raise FerruleError if an option is given that applies to models only."""
    for name, option in typed(context).items():
        if name not in OWN_OPTIONS:
            raise FerruleError(
                f"{option} is for a model, and is not valid with an ELF alone",
                hint="ferrule run firmware.elf MODEL runs a model's firmware that is built already",
            )


def run_elf(
    elf: Path,
    options: JobOptions,
    request: RunRequest,
    until: str | None,
    json_path: Path | None,
    *,
    quiet: bool,
) -> int:
    """Run a firmware until its end, see `ferrule run --help`, and return the command's exit code."""
    from ferrule.emulation import require_gdb
    from ferrule.running.configuration import read_configuration
    from ferrule.testing import start

    to_stdout = json_path == STDOUT
    configuration = read_configuration(options.config).with_devices(options.devices)
    chosen = engine_name(request.engine, configuration, options.board or configuration.board)
    if request.options.gdb is not None:
        require_gdb(chosen)
        click.echo(f"waiting: gdb-multiarch {elf} -ex 'target remote localhost:{request.options.gdb}'", err=True)
    board = start(
        elf,
        board=options.board or configuration.board or BOARD,
        engine=chosen,
        devices=configuration.devices,
        options=replace(request.options, semihosting=request.options.gdb is None),
        registry=configuration.registry(),
    )
    with board:
        for device, fault in request.faults.items():
            board.inject(device, fault)
        document, code, failure = _followed(board, elf, until, request.timeout_s, silent=quiet or to_stdout)
    write_json(json_path, document)
    if failure is not None:
        raise failure
    if not quiet and not to_stdout:
        contract = f"\nthe contract of the devices was not checked: {document.contract}" if document.contract else ""
        click.echo(f"{document.why}{_note(board.image, document.console)}{contract}", err=True)
    return code


def _followed(
    board: Board, elf: Path, until: str | None, timeout_s: float, *, silent: bool
) -> tuple[ConsoleDocument, int, EngineError | None]:
    from ferrule.emulation import EngineError

    console = board.console
    failure: EngineError | None = None
    why, matched = "", False
    try:
        why, matched = console.follow(
            lambda text: None if silent else echo(text, nl=False),
            timeout_s,
            wall_s=timeout_s * WALL_FACTOR,
            until=until,
        )
    except EngineError as error:
        failure = error
        why = str(error).splitlines()[0]
    status = console.exit_status
    report = failure.report if failure is not None else None
    end = "crashed" if failure else "matched" if matched else "stopped" if status is None else "exited"
    document = ConsoleDocument(
        elf=str(elf),
        board=board.name,
        engine=board.engine,
        end=end,
        why=why,
        exit_status=status,
        instructions=board.instructions,
        console=console.text,
        contract=board.unchecked,
        crash=None
        if failure is None
        else CrashPart(reason=why, registers={} if report is None else dict(report.registers)),
    )
    return document, int(not matched and (until is not None or status not in {None, 0})), failure


def _note(image: Image, text: str) -> str:
    """Return a note on a firmware of Ferrule's, which prints nothing and waits for a host."""
    if any(symbol.name.endswith("_link_model") for symbol in image.symbols) and not text:
        return "\nnote: a firmware that Ferrule has generated waits for its inputs; ferrule run firmware.elf MODEL"
    return ""


def split_models(models: tuple[Path, ...]) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the ELF file among the arguments of `ferrule run`, if the first is one, and the models.

    Raises:
        FerruleError: an ELF is not the first argument, or there are several models beside it.
    """
    elves = [path for path in models if is_elf(path)]
    if not elves:
        return None, models
    if elves != [models[0]] or len(models) > 2:
        raise FerruleError("expected models, one ELF, or one ELF and its model: ferrule run firmware.elf MODEL")
    return elves[0], models[1:]
