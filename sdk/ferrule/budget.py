# SPDX-License-Identifier: Apache-2.0
"""The budget of a command: how much the inputs of one piece of work may make it hold in memory and compute.

What is counted follows from the inputs alone, so that the same inputs have the same answer on every machine: bytes that
are held because of them, elements that are computed, and multiplications. Seconds are never counted. Whoever makes
something whose size an input states asks here before it is made.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum

from ferrule.errors import BudgetError, FerruleError, unknown_name


class Resource(StrEnum):
    """What is counted."""

    BYTES = "bytes"
    """Held in memory at one time: contents of files, what they unfold to, tensors, and working arrays."""
    ELEMENTS = "elements"
    """Read and written by one run of a network on one sample, or to compute the constants of one file."""
    MULTIPLICATIONS = "multiplications"
    """Of one run of a network on one sample."""


DEFAULTS: Mapping[Resource, int] = {
    Resource.BYTES: 1 << 30,
    Resource.ELEMENTS: 1 << 32,
    Resource.MULTIPLICATIONS: 1 << 40,
}
"""A network for an image of 224 x 224 pixels takes about 2^24 elements and 2^32 multiplications."""
_WORDS: Mapping[Resource, str] = {
    Resource.BYTES: "bytes of memory",
    Resource.ELEMENTS: "elements to read and write",
    Resource.MULTIPLICATIONS: "multiplications",
}
_UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_AMOUNT = re.compile(r"([0-9][0-9_]{0,24})(|[KMGT]i)(B?)")

Remedy = Callable[[str], str]
"""From a setting, such as bytes=4GiB, to the sentence that says how the caller makes it."""


def in_python(setting: str) -> str:
    """Return how a program sets a limit."""
    name, _, amount = setting.partition("=")
    return f'if the input is right, raise the limit: with ferrule.limits({name}="{amount}"): ...'


class Budget:
    """The limits of one piece of work, and the bytes that it holds until its end; several threads may use it."""

    def __init__(self, limits: Mapping[Resource, int] | None = None, remedy: Remedy = in_python) -> None:
        self.limits = {**DEFAULTS, **(limits or {})}
        self.remedy = remedy
        self._held = 0
        self._lock = threading.Lock()

    def afford(self, resource: Resource, amount: int, what: str) -> None:
        """Raise BudgetError if `amount`, of bytes together with those that are held, is more than the limit."""
        held = self._held if resource is Resource.BYTES else 0
        limit = self.limits[resource]
        if held + amount > limit:
            beside = f" beside {held:,} that are held already" if held else ""
            raise BudgetError(
                f"{what} takes {amount:,} {_WORDS[resource]}{beside}, and the limit is {limit:,}",
                hint=self.remedy(f"{resource}={spelled(resource, held + amount)}"),
            )

    def hold(self, amount: int, what: str) -> None:
        """Count bytes that are held until the end of the work, or until `release`; raises as `afford` does."""
        with self._lock:
            self.afford(Resource.BYTES, amount, what)
            self._held += amount

    def release(self, amount: int) -> None:
        """Count bytes no longer."""
        with self._lock:
            self._held -= amount


class Tally:
    """Adds up what one run computes."""

    def __init__(self) -> None:
        self._spent = dict.fromkeys(Resource, 0)

    def spend(self, resource: Resource, amount: int, what: str) -> None:
        """Count; BudgetError if the sum is more than the limit, which names what was counted last."""
        self._spent[resource] += amount
        afford(resource, self._spent[resource], what)


_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)
_OPEN: list[Budget] = []
"""All budgets of work that has not ended: threads of a pool have no context of their own, and use the last one."""


def current() -> Budget:
    """Return the budget of the present work; a new one without any, so that the default limits always hold."""
    found = _CURRENT.get()
    if found is not None:
        return found
    opened = tuple(_OPEN)
    return opened[-1] if opened else Budget()


def afford(resource: Resource, amount: int, what: str) -> None:
    """Raise BudgetError if the present work may not have so much of a resource at one time; `what` begins the message.

    Of bytes, those that are held already count, too.
    """
    current().afford(resource, amount, what)


def hold(amount: int, what: str) -> None:
    """Count bytes that the present work holds until its end; raises as `afford` does."""
    current().hold(amount, what)


@contextmanager
def held(amount: int, what: str) -> Iterator[None]:
    """Count bytes that are held in the block; raises as `afford` does."""
    budget = current()
    budget.hold(amount, what)
    try:
        yield
    finally:
        budget.release(amount)


@contextmanager
def begun() -> Iterator[None]:
    """Begin a budget with the default limits in the block, unless it is a part of work that has one."""
    if _CURRENT.get() is not None or _OPEN:
        yield
        return
    with _opened(Budget()):
        yield


@contextmanager
def anew() -> Iterator[None]:
    """Begin a budget with the present limits in the block, for one of several pieces of work that hold nothing on."""
    now = current()
    with _opened(Budget(now.limits, now.remedy)):
        yield


@contextmanager
def limited(given: Mapping[Resource, int], remedy: Remedy = in_python) -> Iterator[None]:
    """Begin a budget in the block with some limits; the others are the present ones."""
    with _opened(Budget({**current().limits, **given}, remedy)):
        yield


@contextmanager
def limits(**given: int | str) -> Iterator[None]:
    """Begin a piece of work with other limits: `bytes`, `elements`, `multiplications`.

    Amounts are numbers, or texts such as "4GiB" and "512Mi". Other limits are the present ones.

    Raises:
        FerruleError: a name is unknown, or an amount is no whole number above 0.
    """
    with limited({_resource(name): amount_of(str(amount)) for name, amount in given.items()}):
        yield


@contextmanager
def _opened(budget: Budget) -> Iterator[None]:
    token = _CURRENT.set(budget)
    _OPEN.append(budget)
    try:
        yield
    finally:
        _OPEN[:] = [each for each in _OPEN if each is not budget]
        _CURRENT.reset(token)


def parse(texts: Sequence[str], option: str) -> dict[Resource, int]:
    """Return limits from texts such as "bytes=4GiB,elements=1Gi"; FerruleError for one that is malformed."""
    found: dict[Resource, int] = {}
    for text in texts:
        for part in text.split(","):
            name, separator, amount = part.strip().partition("=")
            if not separator:
                raise FerruleError(
                    f"{option} {text}: expected RESOURCE=AMOUNT, such as bytes=4GiB",
                    hint=f"resources: {', '.join(Resource)}",
                )
            resource = _resource(name)
            if resource in found:
                raise FerruleError(f"{option} {text}: the limit of {resource} is given twice")
            found[resource] = amount_of(amount)
    return found


def amount_of(text: str) -> int:
    """Return a number with a binary unit, such as 4GiB; FerruleError unless it is a whole number above 0."""
    match = _AMOUNT.fullmatch(text.strip())
    amount = int(match[1].replace("_", "")) * _UNITS[match[2]] if match else 0
    if not amount:
        raise FerruleError(
            f"the limit '{text[:40]}' is no amount, expected a whole number above 0",
            hint="units are Ki, Mi, Gi and Ti, for bytes also KiB, MiB, GiB and TiB, such as 4GiB",
        )
    return amount


def spelled(resource: Resource, amount: int) -> str:
    """Return an amount, rounded up to a unit in which it has at most four digits, as far as there is one."""
    unit = next((unit for unit, size in _UNITS.items() if -(-amount // size) < 10_000), "Ti")
    suffix = "B" if unit and resource is Resource.BYTES else ""
    return f"{-(-amount // _UNITS[unit])}{unit}{suffix}"


def _resource(name: str) -> Resource:
    if name not in set(Resource):
        raise unknown_name("limit", name, Resource)
    return Resource(name)
