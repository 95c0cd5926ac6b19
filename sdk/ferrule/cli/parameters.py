# SPDX-License-Identifier: Apache-2.0
"""Makes the parameters of commands: options of the few kinds that there are, and several options as one argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from pathlib import Path
from typing import Any

import click

Option = Callable[[Any], Any]
"""A decorator that adds an option to a command."""

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)
NATURAL = click.IntRange(min=0)
POSITIVE = click.IntRange(min=1)


def flag(names: str, text: str, parameter: str | None = None, **others: Any) -> Option:  # noqa: ANN401 click's types
    """Return an option without a value; see `option`."""
    return _added(names, text, parameter, is_flag=True, **others)


def option(
    names: str,
    text: str,
    parameter: str | None = None,
    *,
    kind: click.ParamType[Any] | Sequence[str] | None = None,
    default: object = None,
    shown: str | bool = True,
    metavar: str | None = None,
    **others: Any,  # noqa: ANN401 click's types
) -> Option:
    """Return an option with a value; `names` are separated by spaces, and `text` is what --help states.

    `parameter` is the name of the argument, unless it follows from that of the option. `kind` may list the values.
    --help states the default, or `shown` in its place.
    """
    if kind is not None:
        others["type"] = kind if isinstance(kind, click.ParamType) else click.Choice(kind)
    if default is not None:
        others["default"] = default
    if default is not None or isinstance(shown, str):
        others["show_default"] = shown
    return _added(names, text, parameter, metavar=metavar, **others)


def several(
    names: str,
    metavar: str,
    text: str,
    parameter: str | None = None,
    **others: Any,  # noqa: ANN401 click's types
) -> Option:
    """Return an option that may be repeated; see `option`."""
    return option(names, text, parameter, metavar=metavar, multiple=True, **others)


def _added(names: str, text: str, parameter: str | None, **others: Any) -> Option:  # noqa: ANN401 click's types
    return click.option(*names.split(), *([] if parameter is None else [parameter]), help=text, **others)


def collected(argument: str, make: Callable[..., object], *options: Option) -> Option:
    """Return a decorator that adds options, and passes what `make` makes of their values, by name, as one argument."""
    names = [name for option in options for name in _names(option)]

    def decorate(function: Callable[..., Any]) -> object:
        @wraps(function)
        def command(**given: Any) -> Any:  # noqa: ANN401 click's types
            made = make(**{name: given.pop(name) for name in names})
            return function(**{argument: made}, **given)

        return together(*options)(command)

    return decorate


def together(*options: Option) -> Option:
    """Return a decorator that adds options in the order in which --help lists them."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


def typed(context: click.Context) -> dict[str, str]:
    """Return what was given on the command line as --help spells it, by the name of the parameter."""
    return {
        each.name: each.opts[-1]
        for each in context.command.params
        if each.name and context.get_parameter_source(each.name) is click.core.ParameterSource.COMMANDLINE
    }


def _names(option: Option) -> list[str]:
    """Return the names of the parameters that a decorator adds."""

    def stub() -> None: ...

    option(stub)
    return [parameter.name for parameter in stub.__click_params__]  # type: ignore[attr-defined]
