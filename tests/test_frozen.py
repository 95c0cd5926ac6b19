# SPDX-License-Identifier: Apache-2.0
"""The decorators of values, beside the standard library's own dataclasses: each behaves as a frozen one with slots."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from ferrule._frozen import frozen, positional

Decorator = Callable[[type], type]
PAIRS: dict[str, tuple[Decorator, Decorator]] = {
    "keywords": (frozen, dataclass(frozen=True, slots=True, kw_only=True)),
    "without eq": (frozen(eq=False), dataclass(frozen=True, slots=True, kw_only=True, eq=False)),
    "either": (frozen(kw_only=False), dataclass(frozen=True, slots=True)),
    "positions": (positional, dataclass(frozen=True, slots=True)),
}
"""By name: a decorator, and the standard library's."""


def plain(decorate: Decorator) -> type[Any]:
    class Value:
        """A value."""

        one: int
        many: list[int] = field(default_factory=list, hash=False)
        two: str = "two"
        hidden: float = field(default=0.5, repr=False, compare=False)

    return decorate(Value)


def undocumented(decorate: Decorator) -> type[Any]:
    class Value:
        pass

    return decorate(Value)


def with_methods(decorate: Decorator) -> type[Any]:
    class Value:  # noqa: PLW1641 - the decorator gives it a hash
        one: int
        half: float = field(init=False)
        fixed: int = field(init=False, default=7)
        made: dict[str, int] = field(init=False, default_factory=dict, hash=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "half", self.one / 2)

        def __repr__(self) -> str:
            return f"<{self.one}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

    return decorate(Value)


def with_hash(decorate: Decorator) -> type[Any]:
    class Value:
        one: int

        def __hash__(self) -> int:
            return 5

    return decorate(Value)


def without_hash(decorate: Decorator) -> type[Any]:
    class Value:
        one: int
        __hash__ = None  # type: ignore[assignment]

    return decorate(Value)


def extended(decorate: Decorator) -> type[Any]:
    base = plain(decorate)

    class More(base):
        two: str = "other"
        four: int = 4

    return decorate(More)


CLASSES: dict[str, tuple[Callable[[Decorator], type[Any]], dict[str, Any]]] = {
    each.__name__: (each, arguments)
    for each, arguments in (
        (plain, {"one": 1}),
        (undocumented, {}),
        (with_methods, {"one": 1}),
        (with_hash, {"one": 1}),
        (without_hash, {"one": 1}),
        (extended, {"one": 1, "four": 5}),
    )
}


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[Decorator, Decorator]:
    return PAIRS[request.param]


@pytest.fixture(params=CLASSES)
def classes(request: pytest.FixtureRequest, pair: tuple[Decorator, Decorator]) -> tuple[type[Any], type[Any]]:
    make, _ = CLASSES[request.param]
    return make(pair[0]), make(pair[1])


def arguments(cls: type) -> dict[str, Any]:
    return CLASSES[cls.__qualname__.partition(".")[0]][1] if "More" not in cls.__name__ else CLASSES["extended"][1]


def described(value: object) -> dict[str, object]:
    return {each.name: getattr(value, each.name) for each in fields(value)}  # type: ignore[arg-type]


def hashed(value: object) -> object:
    try:
        return hash(value)
    except TypeError:
        return "not hashable"


def test_it_is_a_dataclass(classes: tuple[type[Any], type[Any]]) -> None:
    ours, theirs = classes
    assert is_dataclass(ours)
    assert [(each.name, each.kw_only, each.init) for each in fields(ours)] == [
        (each.name, each.kw_only, each.init) for each in fields(theirs)
    ]
    assert (ours.__match_args__, ours.__slots__) == (theirs.__match_args__, theirs.__slots__)
    assert ours.__dataclass_params__.frozen
    assert not hasattr(ours(**arguments(ours)), "__dict__")


def test_signatures_are_those_of_the_library(classes: tuple[type[Any], type[Any]]) -> None:
    ours, theirs = classes
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__init__.__annotations__ == theirs.__init__.__annotations__


def test_values_and_texts(classes: tuple[type[Any], type[Any]]) -> None:
    ours, theirs = (cls(**arguments(cls)) for cls in classes)
    assert described(ours) == described(theirs)
    assert repr(ours) == repr(theirs)
    for copied in (copy.copy(ours), copy.deepcopy(ours), replace(ours)):
        assert described(copied) == described(ours)


def test_comparisons_and_hashes(classes: tuple[type[Any], type[Any]]) -> None:
    ours, theirs = ((cls(**arguments(cls)), cls(**arguments(cls))) for cls in classes)
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])
    assert ours[0] == ours[0]
    assert ours[0] != theirs[0]
    assert (hashed(ours[0]) == hashed(ours[1])) == (hashed(theirs[0]) == hashed(theirs[1]))
    assert (hashed(ours[0]) == "not hashable") == (hashed(theirs[0]) == "not hashable")


def test_changes_are_refused(classes: tuple[type[Any], type[Any]]) -> None:
    ours, theirs = classes
    for cls, others in ((ours, ["another"]), (theirs, [])):  # the library's fails otherwise: slots need a second class
        value = cls(**arguments(cls))
        for name in [*described(value), *others]:
            with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
                setattr(value, name, 1)
            with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
                delattr(value, name)


def test_wrong_arguments_are_refused(pair: tuple[Decorator, Decorator]) -> None:
    ours, theirs = (plain(decorate) for decorate in pair)
    for given, named in (((), {}), ((1,), {}), ((1, [2], "3"), {}), ((), {"one": 1, "other": 2}), ((1,), {"one": 1})):
        outcomes = []
        for cls in (ours, theirs):
            try:
                outcomes.append(str(described(cls(*given, **named))))
            except TypeError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def test_defaults_that_are_made_are_not_shared() -> None:
    cls = plain(frozen)
    assert cls(one=1).many is not cls(one=1).many
    assert cls(one=1, many=[3]).many == [3]


@frozen
class Node:
    """A value that may contain itself, at the top of a module, so that it can be pickled."""

    name: str
    inner: list[object]


class Loose(Node):
    """A class of its own below a frozen one."""


def test_a_value_within_itself_is_shown_once() -> None:
    node = Node(name="x", inner=[])
    node.inner.append(node)
    assert repr(node) == "Node(name='x', inner=[...])"


def test_it_can_be_pickled() -> None:
    node = Node(name="x", inner=[1])
    assert pickle.loads(pickle.dumps(node)) == node  # noqa: S301 - written a moment ago


def test_a_plain_class_below_may_have_attributes_of_its_own() -> None:
    loose = Loose(name="x", inner=[])
    loose.more = 3  # type: ignore[attr-defined]
    del loose.more  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        loose.name = "y"  # type: ignore[misc]
    assert loose != Node(name="x", inner=[])


def test_frozen_dataclasses_of_others_may_extend_it() -> None:
    @dataclass(frozen=True, kw_only=True)
    class More(Node):
        more: int

    assert repr(More(name="x", inner=[], more=2)).endswith("More(name='x', inner=[], more=2)")
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):

        @dataclass
        class Changing(Node):
            more: int


def test_its_init_is_compiled_when_it_is_looked_up() -> None:
    cls = plain(frozen)
    lazy = vars(cls)["__init__"]
    assert not inspect.isfunction(lazy)
    cls(one=1)
    assert inspect.isfunction(vars(cls)["__init__"])
