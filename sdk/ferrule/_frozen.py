# SPDX-License-Identifier: Apache-2.0
"""The decorators of values: dataclasses that never change, without a dictionary.

The standard library compiles six methods of each such class while it is imported, which is a quarter of the time of a
short command. Here classes share their methods, and `__init__` is compiled when it is first looked up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

from ferrule._typing import override

_T = TypeVar("_T")


@overload
def frozen(cls: type[_T], /) -> type[_T]: ...


@overload
def frozen(*, eq: bool = True, kw_only: bool = True) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(
    cls: type[_T] | None = None, /, *, eq: bool = True, kw_only: bool = True
) -> type[_T] | Callable[[type[_T]], type[_T]]:
    """Make a class a frozen dataclass with slots, whose fields are keywords unless `kw_only` is False.

    A method that extends that of its base calls it by name, as `Base.method(self)`: slots need a second class, and
    `super()` refers to the first.
    """
    if cls is None:
        return lambda each: _frozen(each, eq=eq, kw_only=kw_only)
    return _frozen(cls, eq=eq, kw_only=kw_only)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def positional(cls: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass with slots, whose fields may be given by position."""
    return _frozen(cls, eq=True, kw_only=False)


def _frozen(cls: type[_T], *, eq: bool, kw_only: bool) -> type[_T]:
    own, documented = dict(vars(cls)), cls.__doc__
    cls.__doc__ = documented or cls.__name__  # dataclass() would compute a signature for it
    # A class may extend frozen ones only if it says that it is frozen; the two methods compiled for it are replaced.
    extends = any("__dataclass_fields__" in vars(base) for base in cls.__mro__[1:])
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only, frozen=extends)(cls)
    made.__doc__ = documented
    made.__dataclass_params__.frozen = True  # type: ignore[attr-defined]
    methods = _methods(made)
    if not eq or (own.get("__hash__") is None and "__hash__" in own and "__eq__" not in own):
        del methods["__hash__"]
    if not eq:
        del methods["__eq__"]
    for name, method in methods.items():
        if own.get(name) is None:
            setattr(made, name, method)
    return made


def _methods(made: type[Any]) -> dict[str, object]:
    """Return the methods of a class that `dataclass` would compile."""
    known: tuple[Field[Any], ...] = fields(made)
    names = frozenset(each.name for each in known)
    shown = [each.name for each in known if each.repr]
    compared = _values([each.name for each in known if each.compare])
    hashed = _values([each.name for each in known if (each.compare if each.hash is None else each.hash)])

    @recursive_repr()
    def text(self: object) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def equals(self: object, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def digest(self: object) -> int:
        return hash(hashed(self))

    def assign(self: object, name: str, value: object) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    return {
        "__init__": _Init(made),
        "__repr__": text,
        "__eq__": equals,
        "__hash__": digest,
        "__setattr__": assign,
        "__delattr__": delete,
        "__getstate__": _getstate,
        "__setstate__": _setstate,
    }


def _values(names: list[str]) -> Callable[[object], object]:
    """Return a function that returns the tuple of an object's attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda each: tuple(getattr(each, name) for name in names)


def _getstate(self: Any) -> list[object]:  # noqa: ANN401
    return [getattr(self, each.name) for each in fields(self)]


def _setstate(self: Any, state: list[object]) -> None:  # noqa: ANN401
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


class _Init:
    """The `__init__` of a class, which takes its place when it is first looked up."""

    def __init__(self, made: type) -> None:
        self._made = made

    def __get__(self, instance: object, owner: type | None = None) -> object:
        init = _init(self._made)
        self._made.__init__ = init  # type: ignore[misc]
        return init if instance is None else init.__get__(instance, owner)


class _Absent:
    """The default of a field that a function makes, as signatures show it."""

    @override
    def __repr__(self) -> str:
        return "<factory>"


def _init(made: type) -> Any:  # noqa: ANN401
    """Return the `__init__` of a class."""
    outer: dict[str, object] = {"_ferrule_set": object.__setattr__, "_ferrule_absent": _Absent()}
    positions, keywords, lines = ["self"], list[str](), list[str]()
    for each in fields(made):
        parameter = value = each.name
        if each.default_factory is not MISSING:
            outer[f"_ferrule_make_{each.name}"] = each.default_factory
            value = f"_ferrule_make_{each.name}()"
            if each.init:
                parameter += "=_ferrule_absent"
                value += f" if {each.name} is _ferrule_absent else {each.name}"
        elif each.default is not MISSING:
            outer[f"_ferrule_{each.name}"] = each.default
            default = f"_ferrule_{each.name}"
            parameter, value = f"{parameter}={default}", value if each.init else default
        elif not each.init:
            continue  # __post_init__ sets it
        if each.init:
            (keywords if each.kw_only else positions).append(parameter)
        lines.append(f"  _ferrule_set(self, {each.name!r}, {value})\n")
    if hasattr(made, "__post_init__"):
        lines.append("  self.__post_init__()\n")
    parameters = ", ".join([*positions, *(["*", *keywords] if keywords else [])])
    body = "".join(lines) or "  pass\n"
    found: dict[str, Any] = {}
    text = f"def make({', '.join(outer)}):\n def __init__({parameters}):\n{body} return __init__"
    exec(text, vars(sys.modules[made.__module__]), found)  # noqa: S102 - the names of fields are identifiers
    init = found["make"](**outer)
    init.__qualname__ = f"{made.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in fields(made) if each.init} | {"return": None}
    return init
