# SPDX-License-Identifier: Apache-2.0
"""The option `-v`: the log of Ferrule and the commands that it runs, on standard error."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from ferrule.cli.parameters import flag

_LOG = logging.getLogger("ferrule.commands")
_installed: list[bool] = []
"""Whether the audit hook is in place; Python cannot remove one."""


@contextmanager
def verbose() -> Iterator[None]:
    """Print what Ferrule logs, and each command before it is run, while the block lasts."""
    logger = logging.getLogger("ferrule")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    if not _installed:
        sys.addaudithook(_audit)
        _installed.append(True)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "subprocess.Popen" and _LOG.isEnabledFor(logging.INFO):
        _, argv, folder, _ = arguments
        command = argv if isinstance(argv, str) else shlex.join(str(word) for word in argv)  # type: ignore[attr-defined]
        _LOG.info("%s%s", command, f"  [in {folder}]" if folder else "")


def add_option(command: click.Command) -> None:
    """Add `-v` to a command; a second call changes nothing."""
    if any(parameter.name == "verbose" for parameter in command.params):
        return
    text = "Print the commands that are run, and the log."
    flag("-v --verbose", text, expose_value=False, callback=_begin)(command)


def _begin(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.with_resource(verbose())
