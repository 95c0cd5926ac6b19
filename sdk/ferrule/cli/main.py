# SPDX-License-Identifier: Apache-2.0
"""The `ferrule` command: its group, its exit codes and the printing of errors.

Exit codes: 0 success, 1 the run's outputs differ from the reference or a comparison found more change than allowed,
2 a problem the user can fix, 3 nothing was compared, 4 a deadline is kept by a time whose error was not measured, 70 a
bug in Ferrule. A deadline that is missed is a 1.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import traceback
from collections.abc import Iterable, Iterator

import click

from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.cli import limits, verbosity
from ferrule.cli.completion import VARIABLE, complete
from ferrule.cli.console import echo, output_checked, report_stream, reserve_output, standard_streams
from ferrule.cli.parameters import flag
from ferrule.cli.signals import Terminated, signals_raised
from ferrule.errors import FerruleError, NothingComparedError, caused_by_signal
from ferrule.interface import command_line

_LESS = "run it on a machine with more memory, or with less at a time; --limit bytes=... lowers what inputs may take"
EXIT_DIFFERENT = 1
EXIT_USER = 2
EXIT_NOTHING_COMPARED = 3
EXIT_UNPROVED = 4
EXIT_BUG = 70
EXIT_SIGNAL = 128

_COMMANDS = {
    "artifact": "Build, run and compare a generated C++ class.",
    "backends": "List the backends with their devices, capabilities and options.",
    "boards": "List the boards.",
    "build": "Build a generated project.",
    "calibrate": "Measure programs on a board, and find how long its memories take.",
    "cache": "Show or clear the cache of compiled code.",
    "compare": "Show what has changed from one saved document to another.",
    "convert": "Write a model as a TensorFlow Lite file.",
    "doctor": "List the tools that Ferrule can use, and how to install the missing ones.",
    "ethos-u": "Show and execute streams that Arm's compiler Vela writes for Ethos-U.",
    "evaluate": "Compute accuracy and other metrics of a model on your data.",
    "generate": "Write a self-contained firmware project for a model.",
    "init": "Create the folder of a project: a model, a Zephyr application or an accelerator.",
    "inspect": "Show a model's layers, shapes, quantisation, MACs, weights and arena.",
    "new": "Create a working skeleton of a backend, a board or a device model.",
    "quantize": "Turn a float32 model into one of integers, by your data.",
    "registers": "Show the registers of a device, or write them as SVD, C or Markdown.",
    "report": "Write a saved document in another format.",
    "serve-accelerator": "Serve the model of an accelerator over a serial line.",
    "serve-board": "Offer a UART of an emulated board as a serial port.",
    "sweep": "Run models over boards, toolchains, engines, backends and options.",
    "verify": "Compare a firmware with a model: its digests, constants and code.",
    "run": "Run a model, or your own firmware, on a board.",
}


def _as_options(arguments: list[str]) -> list[str]:
    """Return the arguments with `help [COMMAND]` and `version` as the options that they stand for."""
    match arguments:
        case ["help", command, *_] if command in _COMMANDS:
            return [command, "--help"]
        case ["help", command, *_]:
            return [command]  # which is unknown
        case ["help"]:
            return ["--help"]
        case ["version"]:
            return ["--version"]
    return arguments


def _single(command: click.Command) -> Iterator[click.Command]:
    """Yield a command, or those of a group."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from _single(each)
    else:
        yield command


class _LazyGroup(click.Group):
    """Imports a command's module when the command is called, so that `--help` stays quick."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"ferrule.cli.{cmd_name.replace('-', '_')}").command
        command.short_help = _COMMANDS[cmd_name]
        verbosity.add_option(command)
        for each in _single(command):
            reserve_output(each)
            limits.add_option(each)
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = _as_options(args)
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            from ferrule.errors import unknown_name

            raise unknown_name("command", args[0], _COMMANDS)
        return super().resolve_command(ctx, args)


def _versions(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    echo(f"ferrule, version {VERSION}")
    from ferrule.cli.doctor import tool_versions

    for line in (f"Python {platform.python_version()}", *tool_versions()):
        echo(f"  {line}")
    context.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@flag("--version", "Show the versions and exit.", is_eager=True, expose_value=False, callback=_versions)
@flag("--debug", "Show the traceback of an error.")
def cli(debug: bool) -> None:
    """From a trained model to bit-exact firmware on emulated and real boards."""
    del debug  # read in main(), which catches the error


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit the process with its exit code."""
    with standard_streams(), command_line():
        code = _exit_code(sys.argv[1:] if arguments is None else arguments)
    sys.exit(code)


def _exit_code(args: list[str]) -> int:
    """Run the command line, print its error, and return its exit code."""
    debug = "--debug" in args
    code: object
    try:
        with signals_raised(), output_checked():
            if VARIABLE in os.environ:
                return complete(cli, os.environ[VARIABLE])
            code = cli.main(args, prog_name="ferrule", standalone_mode=False, obj=tuple(args))
    except FerruleError as error:
        if debug:
            traceback.print_exc()
        _complain(str(error), error.hint)
        code = EXIT_NOTHING_COMPARED if isinstance(error, NothingComparedError) else EXIT_USER
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except MemoryError as error:
        if debug:
            traceback.print_exc()
        _complain(f"this machine has not enough memory: {str(error) or 'an allocation failed'}", _LESS)
        code = EXIT_USER
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), report_stream().fileno())
        code = 141
    except Terminated as error:
        click.echo(f"ended by {error.signal.name}", err=True)
        code = EXIT_SIGNAL + error.signal
    except SystemExit as error:
        code = error.code if caused_by_signal(error) and error.code else EXIT_USER
        if debug:
            traceback.print_exc()
        last = traceback.extract_tb(error.__traceback__)[-1]
        _complain(
            f"the command ended before its result: SystemExit({error.code!r}) from {last.filename}:{last.lineno}", None
        )
    except BaseException:  # noqa: BLE001 the last place that can print a helpful message
        traceback.print_exc()
        _complain("this is a bug in ferrule; please report it with the traceback above", None)
        code = EXIT_BUG
    return code if isinstance(code, int) else 0


_EXITS = {
    "different": EXIT_DIFFERENT,
    "missed": EXIT_DIFFERENT,
    "nothing_compared": EXIT_NOTHING_COMPARED,
    "unproved": EXIT_UNPROVED,
}
"""By verdict, or judgement of a deadline, in the order in which they decide."""


def exit_of(verdicts: Iterable[str]) -> int:
    """Return the exit code of a command with these verdicts and judgements, of which a difference decides first."""
    found = set(verdicts)
    return next((code for verdict, code in _EXITS.items() if verdict in found), 0)


def _complain(message: str, hint: str | None) -> None:
    from ferrule.rendering import shown

    colour = False if "NO_COLOR" in os.environ else None
    click.echo(f"{click.style('error:', fg='red', bold=True)} {shown(message)}", err=True, color=colour)
    if hint:
        click.echo(f"{click.style('hint:', fg='yellow')} {shown(hint)}", err=True, color=colour)
