# SPDX-License-Identifier: Apache-2.0
"""Faults put into device.c on purpose: the original passes each check, and the mutant fails it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from device_queue import Queue
from fake_device import Bench, Event, Fake, library

from ferrule._frozen import positional
from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc


def locks(bench: Bench) -> None:
    """Check that two threads never have the device at once."""
    bench.bring("foreign")
    assert bench.call("open") == Status.TIMEOUT


def only_the_owner_closes(bench: Bench) -> None:
    bench.bring("foreign")
    assert bench.call("close") == Status.OWNER
    bench.fake.state.thread = 1
    assert bench.call("close") == Status.OK


def no_power_is_an_error(bench: Bench) -> None:
    bench.bring("bound")
    bench.fake.fail({Event.POWER_ON: Status.UNAVAILABLE})
    assert bench.call("activate") == Status.UNAVAILABLE
    assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, Event.UNLOCK]
    assert bench.call("open") == Status.STATE


def a_copy_is_no_handle(bench: Bench) -> None:
    bench.bring("open")
    copy = bench.fake.copied(bench.dev)
    with bench.fake.thread(2):
        assert bench.call("open", copy) == Status.HANDLE


def what_is_not_ready_does_not_open(bench: Bench) -> None:
    bench.bring("active")
    bench.fake.fail({Event.READY: Status.UNAVAILABLE})
    assert bench.call("open") == Status.UNAVAILABLE
    assert bench.call("copy_to") == Status.STATE


def a_device_in_use_gets_no_driver(bench: Bench) -> None:
    bench.bring("initialised")
    lib, null = bench.lib, bench.fake.null
    assert lib.ferrule_device_bind_driver(bench.dev, lib.fake_no_driver(), null) == Status.OK
    assert bench.call("activate") == Status.OK
    assert lib.ferrule_device_set_driver(bench.dev, bench.fake.driver, bench.context, null) == Status.STATE


def a_driver_is_not_replaced(bench: Bench) -> None:
    bench.bring("bound")
    other = bench.fake.bare_driver
    assert bench.lib.ferrule_device_set_driver(bench.dev, other, bench.context, bench.fake.null) == Status.ARGUMENT


def a_failed_check_unlocks(bench: Bench) -> None:
    bench.bring("active")
    bench.fake.fail({Event.CHECK: Status.DEVICE})
    assert bench.call("open") == Status.DEVICE
    bench.fake.fail({})
    with bench.fake.thread(2):
        assert bench.call("open") == Status.OK


def a_failed_driver_loses_power(bench: Bench) -> None:
    bench.bring("bound")
    bench.fake.fail({Event.ACTIVATE: Status.DEVICE})
    assert bench.call("activate") == Status.DEVICE
    assert Event.POWER_OFF in bench.fake.events()


def waiting_is_no_reason_to_destroy(bench: Bench) -> None:
    bench.bring("active")
    results: list[int] = []

    def leave() -> None:
        with bench.fake.thread(2):
            results.extend(bench.call(name) for name in ("deactivate", "destroy"))

    bench.fake.during(Event.LOCK, leave)
    assert bench.call("open") == Status.STATE
    assert results == [Status.OK, Status.BUSY]


def power_goes_up_once(bench: Bench) -> None:
    bench.bring("bound")

    def activate() -> None:
        with bench.fake.thread(2):
            assert bench.call("activate") == Status.OK

    bench.fake.during(Event.LOCK, activate)
    assert bench.call("activate") == Status.OK
    assert bench.fake.events().count(Event.POWER_ON) == 1


def the_owner_opens_once(bench: Bench) -> None:
    bench.bring("open")
    assert bench.call("open") == Status.STATE


def copies_stay_inside(bench: Bench) -> None:
    bench.bring("open")
    data = bench.fake.ffi.new("uint8_t[8]")
    assert bench.lib.ferrule_device_copy_to(bench.dev, 61, data, 4) == Status.ARGUMENT
    assert bench.lib.ferrule_device_copy_to(bench.dev, 65, data, 1) == Status.ARGUMENT


def no_thread_overtakes(bench: Queue) -> None:
    waiters = [bench.wait(number) for number in (2, 3)]
    bench.leave_to(*waiters)


def the_highest_priority_is_first(bench: Queue) -> None:
    low, high = (bench.wait(2 + value, priority=value) for value in range(2))
    bench.leave_to(high, low)


def inheritance_counts(bench: Queue) -> None:
    stop = bench.fake.ffi.new("struct ferrule_stop *")
    low = bench.wait(2, priority=1, call=lambda: bench.open(stop=stop))
    high = bench.wait(3, priority=2)
    bench.fake.state.priorities[2] = 3
    assert bench.go(low) is None
    bench.leave_to(low, high)


def a_try_overtakes_nobody(bench: Queue) -> None:
    waiter = bench.wait(2)
    assert bench.call("close") == Status.OK
    assert bench.open(0) == Status.BUSY
    assert bench.go(waiter) == Status.OK


def who_gives_up_leaves_no_place(bench: Queue) -> None:
    kept = bench.fake.ffi.new("struct ferrule_place *")
    bench.fake.fail({Event.LOCK: Status.FAILED})
    with bench.fake.thread(2):
        assert bench.open(100, kept=kept) == Status.FAILED
    assert not kept.waits


def a_place_is_kept(bench: Queue) -> None:
    kept = bench.fake.ffi.new("struct ferrule_place *")
    with bench.fake.thread(2):
        assert bench.open(100, kept=kept) == Status.TIMEOUT
    assert bench.call("close") == Status.OK
    assert bench.open(0) == Status.BUSY


def who_does_not_run_is_overtaken(bench: Queue) -> None:
    waiter = bench.wait(2)
    assert bench.again() == Status.OK
    bench.leave_to(waiter)


def who_gives_way_yields(bench: Queue) -> None:
    waiter = bench.wait(2)
    bench.when(Event.YIELD, lambda: bench.go(waiter))
    assert bench.again() == Status.TIMEOUT


def limits_end(bench: Queue) -> None:
    assert bench.call("close") == Status.OK
    assert bench.open(2**31) == Status.ARGUMENT


@positional
class Mutant:
    """A passage of device.c, its replacement, and the check that must fail."""

    old: str
    new: str
    check: Callable[[Bench], None] | Callable[[Queue], None]
    kind: type[Bench] = Bench
    """What the check needs."""


MUTANTS = {
    "no lock": Mutant("status = ferrule_platform_lock(dev, slice);", "status = FERRULE_OK;", locks),
    "the lock for anyone": Mutant("return first == place;", "return true;", no_thread_overtakes, Queue),
    "the last waiter first": Mutant(
        "if (each->priority > first->priority) {",
        "if (each->priority >= first->priority) {",
        no_thread_overtakes,
        Queue,
    ),
    "no priorities": Mutant(
        "if (each->priority > first->priority) {",
        "if (each->priority > INT32_MAX - 1) {",
        the_highest_priority_is_first,
        Queue,
    ),
    "a priority of the past": Mutant(
        "place->priority = ferrule_platform_priority(); /* it may have inherited another one */",
        "",
        inheritance_counts,
        Queue,
    ),
    "a try that overtakes": Mutant(
        "if (whole > 0u || ferrule_turn_is_mine(core, place)) {", "if (1) {", a_try_overtakes_nobody, Queue
    ),
    "a place that outlives its thread": Mutant(
        "    ferrule_turn_leave(core, place);\n    if (status != FERRULE_OK) {",
        "    if (status == FERRULE_OK) ferrule_turn_leave(core, place);\n    if (status != FERRULE_OK) {",
        who_gives_up_leaves_no_place,
        Queue,
    ),
    "a place that ends with its slice": Mutant(
        "if (status == FERRULE_ERR_TIMEOUT && kept != NULL) {", "if (0) {", a_place_is_kept, Queue
    ),
    "endless patience": Mutant("patience--;", "", who_does_not_run_is_overtaken, Queue),
    "a lock that is kept out of turn": Mutant(
        "    status = ferrule_platform_unlock(dev);\n    ferrule_platform_yield();",
        "    status = FERRULE_OK;\n    ferrule_platform_yield();",
        no_thread_overtakes,
        Queue,
    ),
    "no yield": Mutant("    ferrule_platform_yield();\n", "", who_gives_way_yields, Queue),
    "a limit beyond the clock's": Mutant("if (whole > FERRULE_WAIT_MOST) {", "if (0) {", limits_end, Queue),
    "close by a non-owner": Mutant(
        "return core->owner == ferrule_platform_thread() ? FERRULE_OK : FERRULE_ERR_OWNER;",
        "return FERRULE_OK;",
        only_the_owner_closes,
    ),
    "power failing": Mutant(
        "if (status != FERRULE_OK) {\n        return status;\n    }\n    if (core->driver->activate != NULL) {",
        "if (core->driver->activate != NULL) {",
        no_power_is_an_error,
    ),
    "handle copied by value": Mutant("core->self == core && ", "", a_copy_is_no_handle),
    "a device that is not ready": Mutant(
        "status = ferrule_platform_ready(dev);", "status = FERRULE_OK;", what_is_not_ready_does_not_open
    ),
    "no unlock after a failed check": Mutant(
        "(void)give(dev); /* the error of the check is returned */", "", a_failed_check_unlocks
    ),
    "power stays after a failed driver": Mutant(
        "(void)ferrule_platform_power(dev, false); /* the driver's error is returned */",
        "",
        a_failed_driver_loses_power,
    ),
    "waiters forgotten": Mutant(
        "core->activations > 0 || core->users > 0",
        "core->activations > 0 || core->owner != NULL",
        waiting_is_no_reason_to_destroy,
    ),
    "no second look at the count": Mutant(
        "if (core->activations == 0) { /* no other thread activated it while this one waited */",
        "{",
        power_goes_up_once,
    ),
    "nested opens": Mutant("if (core->owner == ferrule_platform_thread()) {", "if (0) {", the_owner_opens_once),
    "no range": Mutant(
        "device_offset > driver->memory_bytes || bytes > driver->memory_bytes - device_offset",
        "bytes > driver->memory_bytes",
        copies_stay_inside,
    ),
    "a driver for a device in use": Mutant(
        "if (core->users > 0 || core->activations > 0) {", "if (0) {", a_device_in_use_gets_no_driver
    ),
    "another driver replaced": Mutant(
        "if (driver == NULL || core->driver != &ferrule_no_driver) {", "if (driver == NULL) {", a_driver_is_not_replaced
    ),
}


def passes(mutant: Mutant, fake: Fake) -> None:
    bench = mutant.kind(fake)
    mutant.check(bench)  # type: ignore[arg-type]  # a Queue for those that want one
    bench.fake.unwatch()
    bench.fake.done()


@pytest.mark.parametrize("name", MUTANTS)
def test_the_sound_source_passes(name: str) -> None:
    passes(MUTANTS[name], library())


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_is_noticed(name: str) -> None:
    mutant = MUTANTS[name]
    fake = library((mutant.old, mutant.new))
    with pytest.raises(AssertionError):
        passes(mutant, fake)
