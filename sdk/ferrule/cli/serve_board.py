# SPDX-License-Identifier: Apache-2.0
"""`ferrule serve-board`."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from ferrule.cli import completion
from ferrule.cli.options import BOARD, CLOCKS, ENGINE, board_option, config_option, engine_name
from ferrule.cli.parameters import FILE, flag, option, several
from ferrule.cli.serve_accelerator import interrupted, logger


@click.command("serve-board")
@click.argument("elf", type=FILE)
@config_option
@board_option
@option(
    "--engine",
    "The engine that runs the firmware: unicorn, qemu or renode.",
    shown=ENGINE,
    shell_complete=completion.engines,
)
@option("--uart", "The UART: console, link, or a name of the platform description.", default="console")
@option(
    "--port",
    "Where to offer it: pty for a pseudo-terminal, whose name is printed, listen://host:port for a connection, or "
    "a serial port.",
    default="pty",
)
@several(
    "--device",
    "NAME=BACKEND",
    "Attach the model of a backend's device, as `ferrule run` does; ferrule.toml has the bindings.",
    "devices",
)
@option(
    "--clock",
    "unicorn: what time is counted in, instructions, or the cycles of a model of the core and of the board's memories.",
    kind=CLOCKS,
    default=CLOCKS[0],
)
@flag("-q --quiet", "Log errors only.")
def command(
    elf: Path,
    config: Path | None,
    board: str | None,
    engine: str | None,
    uart: str,
    port: str,
    devices: tuple[str, ...],
    clock: str,
    quiet: bool,
) -> None:
    """Run the firmware ELF on an emulated board and offer one of its UARTs as a serial port until Ctrl-C.

    A program for a real board then talks to the emulated one: a terminal, or the runner of MLPerf Tiny
    (docs/mlperf_tiny.md).
    """
    from ferrule.emulation import Clock
    from ferrule.emulation.serving import bridge, open_port
    from ferrule.link import ListeningChannel
    from ferrule.link.pty import SCHEME, PtyChannel
    from ferrule.running.configuration import read_configuration
    from ferrule.testing import start

    configuration = read_configuration(config).with_devices(devices)
    log = logger(quiet=quiet)
    chosen = engine_name(engine, configuration, board or configuration.board)
    with (
        contextlib.closing(PtyChannel() if port == SCHEME else open_port(port)) as channel,
        start(
            elf,
            board=board or configuration.board or BOARD,
            engine=chosen,
            devices=configuration.devices,
            registry=configuration.registry(),
            clock=Clock(clock),
        ) as running,
        interrupted() as stopped,
    ):
        where = channel.path if isinstance(channel, PtyChannel) else port
        where = channel.url if isinstance(channel, ListeningChannel) else where
        log(f"{uart} of {running.name} by {chosen} at {where}, Ctrl-C ends it")
        bridge(running.channel(uart), channel, until=stopped)
    log("ended")
