# SPDX-License-Identifier: Apache-2.0
"""The decorators of values: dataclasses that never change, without a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform, overload

_T = TypeVar("_T")


@overload
def frozen(cls: type[_T], /) -> type[_T]: ...


@overload
def frozen(*, eq: bool = True, kw_only: bool = True, order: bool = False) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(
    cls: type[_T] | None = None, /, *, eq: bool = True, kw_only: bool = True, order: bool = False
) -> type[_T] | Callable[[type[_T]], type[_T]]:
    """Make a class a frozen dataclass with slots, whose fields are keywords unless `kw_only` is False.

    A method that extends that of its base calls it by name, as `Base.method(self)`: slots need a second class, and
    `super()` refers to the first.
    """
    decorate = dataclass(frozen=True, slots=True, kw_only=kw_only, eq=eq, order=order)
    return decorate if cls is None else decorate(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def positional(cls: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass with slots, whose fields may be given by position."""
    return dataclass(frozen=True, slots=True)(cls)
