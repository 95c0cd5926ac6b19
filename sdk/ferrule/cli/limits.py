# SPDX-License-Identifier: Apache-2.0
"""The option `--limit`: how much memory and work the inputs of a command may take."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ferrule.budget import limited, parse
from ferrule.cli.parameters import several

OPTION = "--limit"
_DIGITS = 18
METAVAR = "RESOURCE=AMOUNT"
HELP = "let inputs take more memory or work, such as bytes=4GiB (docs/commands.md#limits)."


def add_option(command: click.Command) -> None:
    """Give a command a budget, and `--limit` unless it has one; a second call changes nothing."""
    if not any(OPTION in each.opts for each in command.params):
        text = f"{HELP[0].upper()}{HELP[1:]}"
        add = several(OPTION, METAVAR, text, "budget_limits", expose_value=False, callback=_begin)
        add(command)


def begin(context: click.Context, texts: Sequence[str]) -> None:
    """Begin the budget of a command, which lasts until the command ends."""
    context.with_resource(
        limited(parse(texts, OPTION), lambda setting: f"if the input is right, raise the limit: {OPTION} {setting}")
    )


def split(context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> int | None:
    """Begin the budget of a command whose `--limit` also takes a number of samples, and return that number."""
    numbers = [text for text in texts if "=" not in text]
    if not context.resilient_parsing:
        begin(context, [text for text in texts if "=" in text])
    if not numbers:
        return None
    if len(numbers) > 1:
        raise click.BadParameter("a number of samples is given twice")
    text = numbers[0]
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text)):
        raise click.BadParameter(f"'{text[:40]}', expected a number of samples above 0, or {METAVAR}")
    return int(text)


def _begin(context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> None:
    if not context.resilient_parsing:
        begin(context, texts)
