# SPDX-License-Identifier: Apache-2.0
"""The order in which threads get a device: the longest waiter of the highest priority is next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from device_queue import Queue
from fake_device import Event, library

from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc

MOST = 2**31 - 1
"""FERRULE_WAIT_MOST."""
PATIENCE = 32
"""How often device.c gives the lock to a waiter that does not take it."""


@pytest.fixture
def queue() -> Iterator[Queue]:
    made = Queue(library())
    yield made
    made.fake.unwatch()
    made.fake.done()


def test_a_thread_that_opens_again_at_once_gives_way(queue: Queue) -> None:
    waiter = queue.wait(2)
    queue.when(Event.YIELD, lambda: queue.go(waiter))
    assert queue.again() == Status.TIMEOUT
    assert waiter.status == Status.OK
    lock = [Event.LOCK, Event.UNLOCK, Event.YIELD]
    assert queue.fake.events() == [*lock, Event.READY, Event.CHECK, Event.LOCK]
    assert queue.users == 1
    with queue.fake.thread(2):
        assert queue.call("close") == Status.OK
    assert queue.open() == Status.OK


def test_a_try_overtakes_nobody(queue: Queue) -> None:
    waiter = queue.wait(2)
    assert queue.call("close") == Status.OK
    queue.fake.events()
    assert queue.open(0) == Status.BUSY
    assert queue.fake.events() == []
    assert queue.go(waiter) == Status.OK
    with queue.fake.thread(2):
        assert queue.call("close") == Status.OK
    assert queue.open(0) == Status.OK


def test_a_try_that_has_the_lock_keeps_it(queue: Queue) -> None:
    """A thread of higher priority, which comes meanwhile, waits in the kernel's queue."""
    assert queue.call("close") == Status.OK
    queue.fake.events()
    queue.when(Event.LOCK, lambda: queue.wait(2, priority=1) and None)
    assert queue.open(0) == Status.OK
    assert queue.call("close") == Status.OK
    assert queue.go(queue.waiters[0]) == Status.OK


def test_threads_have_it_in_order_of_arrival(queue: Queue) -> None:
    waiters = [queue.wait(number) for number in (3, 2, 4)]
    queue.leave_to(*waiters)
    assert queue.users == 0


def test_the_highest_priority_is_first(queue: Queue) -> None:
    low, high, middle, higher = (queue.wait(2 + index, priority=value) for index, value in enumerate((1, 7, 4, 7)))
    queue.leave_to(high, higher, middle, low)


def test_a_higher_priority_overtakes(queue: Queue) -> None:
    waiter = queue.wait(2, priority=3)
    queue.fake.state.priorities[1] = 4
    assert queue.again() == Status.OK
    assert queue.fake.events() == [Event.LOCK, Event.READY, Event.CHECK]
    queue.leave_to(waiter)


def test_a_priority_that_was_inherited_counts(queue: Queue) -> None:
    """It is read again whenever the thread runs, after a slice of a run that can be cancelled."""
    stop = queue.fake.ffi.new("struct ferrule_stop *")
    sliced = queue.wait(3, priority=1, call=lambda: queue.open(stop=stop))
    other = queue.wait(2, priority=2)
    queue.fake.state.priorities[3] = 9
    assert queue.go(sliced) is None
    queue.leave_to(sliced, other)


def test_a_waiter_that_does_not_run_is_overtaken(queue: Queue) -> None:
    """Such as one that a debugger has suspended: it keeps its place, but nobody waits for it for ever."""
    waiter = queue.wait(2)
    assert queue.again() == Status.OK
    events = queue.fake.events()
    assert events.count(Event.YIELD) == events.count(Event.UNLOCK) == PATIENCE
    assert events.count(Event.LOCK) == PATIENCE + 1
    queue.leave_to(waiter)


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.BUSY, Status.FAILED])
def test_a_waiter_that_gives_up_leaves_no_reservation(queue: Queue, status: Status) -> None:
    waiter = queue.wait(2)
    last = queue.wait(3)
    queue.fake.fail({Event.LOCK: status})
    assert queue.go(waiter) == status
    queue.fake.fail({})
    assert queue.users == 2
    queue.leave_to(last)
    assert queue.users == 0


def test_a_cancelled_waiter_leaves_no_reservation(queue: Queue) -> None:
    stop = queue.fake.ffi.new("struct ferrule_stop *")
    waiter = queue.wait(2, call=lambda: queue.open(stop=stop))
    assert queue.go(waiter) is None  # the end of a slice: it still waits
    queue.lib.ferrule_stop_request(stop)
    assert queue.go(waiter) == Status.CANCELLED
    assert queue.users == 1
    assert queue.again() == Status.OK
    assert Event.YIELD not in queue.fake.events()


def test_a_lock_that_cannot_be_given_back_is_told(queue: Queue) -> None:
    waiter = queue.wait(2)
    assert queue.call("close") == Status.OK
    queue.fake.fail({Event.UNLOCK: Status.FAILED})
    assert queue.open() == Status.FAILED
    queue.fake.fail({})
    assert queue.go(waiter) == Status.OK
    assert queue.users == 1


def test_giving_way_ends_with_the_time(queue: Queue) -> None:
    waiter = queue.wait(2)
    assert queue.call("close") == Status.OK

    def later() -> None:
        queue.fake.state.now_us += 90

    queue.when(Event.YIELD, later)
    assert queue.open(90) == Status.TIMEOUT
    assert queue.users == 1
    assert queue.go(waiter) == Status.OK


def test_a_place_is_kept_from_call_to_call(queue: Queue) -> None:
    kept = queue.fake.ffi.new("struct ferrule_place *")
    with queue.fake.thread(2):
        assert queue.open(100, kept=kept) == Status.TIMEOUT
        assert kept.waits
    waiter = queue.wait(3)
    assert queue.users == 3
    assert queue.call("close") == Status.OK
    assert queue.go(waiter) is None, "it overtook the thread that keeps its place"
    with queue.fake.thread(2):
        assert queue.open(100, kept=kept) == Status.OK
        assert not kept.waits
        assert queue.users == 2
        assert queue.call("close") == Status.OK
    assert queue.go(waiter) == Status.OK


def test_a_place_that_is_left_holds_nobody_up(queue: Queue) -> None:
    kept = queue.fake.ffi.new("struct ferrule_place *")
    with queue.fake.thread(2):
        assert queue.open(100, kept=kept) == Status.TIMEOUT
        for _ in range(2):
            queue.lib.ferrule_device_leave(queue.dev, kept)
    assert not kept.waits
    assert queue.users == 1
    assert queue.again() == Status.OK
    assert Event.YIELD not in queue.fake.events()


def test_a_place_is_not_kept_after_an_error(queue: Queue) -> None:
    kept = queue.fake.ffi.new("struct ferrule_place *")
    with queue.fake.thread(2):
        assert queue.open(100, kept=kept) == Status.TIMEOUT
        queue.fake.fail({Event.LOCK: Status.FAILED})
        assert queue.open(100, kept=kept) == Status.FAILED
    assert not kept.waits
    assert queue.users == 1


def test_users_and_turns_are_counted(queue: Queue) -> None:
    turns = queue.fake.ffi.new("uint32_t *", 10)
    assert queue.lib.ferrule_device_users(queue.dev, turns) == 1
    assert turns[0] == 10 + 2  # activate and open
    queue.wait(2)
    assert queue.lib.ferrule_device_users(queue.dev, turns) == 2
    queue.leave_to(*queue.waiters)
    assert queue.lib.ferrule_device_users(queue.dev, turns) == 0
    assert turns[0] == 10 + 2 + 2 + 3


@pytest.mark.parametrize(("timeout_us", "status"), [(MOST, Status.OK), (MOST + 1, Status.ARGUMENT)])
def test_a_limit_that_the_clock_cannot_measure_is_refused(queue: Queue, timeout_us: int, status: Status) -> None:
    assert queue.call("close") == Status.OK
    assert queue.open(timeout_us) == status
    assert queue.users == (1 if status is Status.OK else 0)
    queue.fake.state.open_timeout_us = timeout_us
    assert queue.call("open") == (Status.STATE if status is Status.OK else Status.ARGUMENT)
