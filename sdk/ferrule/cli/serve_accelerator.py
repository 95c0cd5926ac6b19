# SPDX-License-Identifier: Apache-2.0
"""`ferrule serve-accelerator`."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

import click

from ferrule.cli.parameters import POSITIVE, flag, option, several
from ferrule.cli.signals import handled
from ferrule.errors import FerruleError


@click.command("serve-accelerator")
@option(
    "--port",
    "A serial port (/dev/ttyUSB0, COM3), a URL such as socket://host:port, or listen://host:port to wait for a "
    "connection.",
    required=True,
)
@option("--baud", "Bits per second.", kind=POSITIVE, default=115_200)
@option("--backend", "The backend whose device is served; required if several have devices behind serial lines.")
@several(
    "--binding",
    "KEY=VALUE",
    "A binding of the device as in [devices.NAME] of ferrule.toml, such as memory_bytes=65536; may be repeated.",
    "bindings",
)
@flag("-q --quiet", "Log errors only.")
def command(port: str, baud: int, backend: str | None, bindings: tuple[str, ...], quiet: bool) -> None:
    """Serve the model of an accelerator over a serial line until Ctrl-C.

    A board at the other end of the port, real or emulated, uses the model as it would use the accelerator. Each request
    is logged with the seconds since the start.
    """
    from ferrule.emulation.serving import open_port, serial_model, serve
    from ferrule.link import ListeningChannel

    name, model = serial_model(backend, dict(_binding(text) for text in bindings))
    log = logger(quiet=quiet)
    model.log = log
    with contextlib.closing(open_port(port, baud=baud)) as channel, interrupted() as stopped:
        where = channel.url if isinstance(channel, ListeningChannel) else port
        log(f"{name} at {where}, Ctrl-C ends it")
        serve(model, channel, until=stopped)
    log("ended")


def _binding(text: str) -> tuple[str, str | int]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise FerruleError(f"--binding {text} is not KEY=VALUE", hint="--binding memory_bytes=65536")
    try:
        return key, int(value, 0)
    except ValueError:
        return key, value


def logger(*, quiet: bool) -> Callable[[str], None]:
    """Return a function that logs a line with the seconds since now, or none if `quiet`."""
    started_s = time.monotonic()

    def log(line: str) -> None:
        if not quiet:
            click.echo(f"{time.monotonic() - started_s:9.3f} {line}", err=True)

    return log


@contextlib.contextmanager
def interrupted() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT or SIGTERM has arrived; either ends the command cleanly."""
    from ferrule.devices.watchdog import WATCHDOG

    event = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    ours = WATCHDOG.raising_handler(event.set, handled=handled)
    before = [signal.signal(number, ours) for number in numbers]
    try:
        yield event.is_set
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
