# SPDX-License-Identifier: Apache-2.0
"""Commands in flight, waits, deadlines and cancellation, with every result of the platform and of the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fake_device import CALLS, DEFAULT, Beside, Event

from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc


@pytest.fixture
def bench() -> Iterator[Beside]:
    made = Beside()
    yield made
    made.fake.done()


def test_commands_are_collected_in_order(bench: Beside) -> None:
    bench.open()
    assert [bench.submit(), bench.submit(), bench.submit()] == [Status.OK, Status.OK, Status.BUSY]
    assert bench.in_flight == 2
    assert [bench.finish(), bench.finish(), bench.finish()] == [Status.OK, Status.OK, Status.STATE]
    events = [Event.SUBMIT, Event.SUBMIT, *2 * [Event.LOOK, Event.FINISH]]
    assert bench.fake.events() == events
    assert bench.call("close") == Status.OK


def test_copies_are_commands(bench: Beside) -> None:
    bench.open()
    assert bench.lib.ferrule_device_submit_copy_to(bench.dev, 60, bench.data, 4) == Status.OK
    assert bench.lib.ferrule_device_submit_copy_from(bench.dev, bench.data, 60, 4) == Status.OK
    assert bench.lib.ferrule_device_submit_copy_to(bench.dev, 0, bench.data, 4) == Status.BUSY
    assert bench.lib.ferrule_device_submit_copy_from(bench.dev, bench.data, 0, 4) == Status.BUSY
    assert [bench.finish(), bench.finish()] == [Status.OK, Status.OK]
    assert bench.lib.ferrule_device_submit_copy_to(bench.dev, 0, bench.fake.null, 0) == Status.OK
    assert bench.lib.ferrule_device_submit_copy_from(bench.dev, bench.fake.null, 0, 0) == Status.OK


@pytest.mark.parametrize(("offset", "size"), [(61, 4), (65, 0), (0, 65), (2**32 - 1, 2)])
def test_a_copy_stays_inside_of_the_memory(bench: Beside, offset: int, size: int) -> None:
    bench.open()
    assert bench.lib.ferrule_device_submit_copy_to(bench.dev, offset, bench.data, size) == Status.ARGUMENT
    assert bench.lib.ferrule_device_submit_copy_from(bench.dev, bench.data, offset, size) == Status.ARGUMENT
    assert bench.lib.ferrule_device_submit_copy_to(bench.dev, 0, bench.fake.null, 1) == Status.ARGUMENT
    assert bench.in_flight == 0


def test_a_command_that_does_not_begin_is_none(bench: Beside) -> None:
    bench.open()
    bench.fake.fail({Event.SUBMIT: Status.DEVICE, Event.SUBMIT_COPY_TO: Status.DEVICE})
    assert bench.submit() == Status.DEVICE
    assert bench.lib.ferrule_device_submit_copy_to(bench.dev, 0, bench.data, 4) == Status.DEVICE
    assert bench.in_flight == 0


def test_what_a_driver_lacks_is_refused(bench: Beside) -> None:
    bench = Beside()
    bench.driver = bench.fake.bare_driver
    bench.open()
    assert bench.submit() == Status.UNSUPPORTED
    bench.driver, bench.dev = bench.fake.driver, bench.fake.storage()
    bench.context = bench.fake.context(bench.dev)
    bench.open()
    assert bench.lib.ferrule_device_submit(bench.dev, bench.fake.beside_driver, bench.word) == Status.ARGUMENT
    assert bench.lib.ferrule_device_submit_copy_to(bench.dev, 0, bench.data, 4) == Status.UNSUPPORTED
    assert bench.lib.ferrule_device_submit_copy_from(bench.dev, bench.data, 0, 4) == Status.UNSUPPORTED


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_the_device_must_be_open_here(bench: Beside, name: str, call: object) -> None:
    assert callable(call)
    assert call(bench, bench.fake.null) == Status.ARGUMENT
    assert call(bench, bench.dev) == Status.HANDLE
    bench.bring("active")
    assert call(bench, bench.dev) == Status.STATE
    with bench.fake.interrupt():
        assert call(bench, bench.dev) == Status.INTERRUPT
    assert bench.call("open") == Status.OK
    with bench.fake.thread(2):
        assert call(bench, bench.dev) == Status.OWNER
    assert call(bench, bench.fake.copied(bench.dev)) == Status.HANDLE


def test_a_wait_sleeps_until_it_is_notified(bench: Beside) -> None:
    """The notification of an earlier command ends the wait early; it is repeated."""
    bench.open()
    bench.context.over_us = 300
    bench.lib.ferrule_device_notify(bench.dev)
    assert bench.submit() == Status.OK
    seen = 0

    def happen(event: Event) -> None:
        nonlocal seen
        if event is Event.WAIT:
            seen += 1
            if seen == 2:
                bench.fake.state.now_us = 310
                bench.lib.ferrule_device_notify(bench.dev)

    bench.fake.watch(happen)
    assert bench.finish() == Status.OK
    bench.fake.unwatch()
    assert seen == 2


def test_a_device_without_an_interrupt_is_looked_at(bench: Beside) -> None:
    bench.open()
    bench.context.poll_us = 0
    bench.context.over_us = 50
    assert bench.submit() == Status.OK
    assert bench.finish() == Status.OK
    assert Event.WAIT not in bench.fake.events()
    bench.context.poll_us, bench.context.over_us = 100, bench.fake.state.now_us + 250
    assert bench.submit() == Status.OK
    assert bench.finish() == Status.OK
    assert bench.fake.events().count(Event.WAIT) == 3


def elapsed(bench: Beside, timeout_us: int = DEFAULT) -> int:
    """Submit a command that never ends; return how long the wait for it took."""
    bench.context.over_us = DEFAULT
    assert bench.submit() == Status.OK
    begin = bench.fake.state.now_us
    assert bench.finish(timeout_us) == Status.TIMEOUT
    assert bench.in_flight == 0
    return int(bench.fake.state.now_us - begin)


def test_the_time_limit_is_that_of_the_call_the_handle_or_the_driver(bench: Beside) -> None:
    assert bench.lib.ferrule_device_set_timeout(bench.fake.null, 1) == Status.ARGUMENT
    assert bench.lib.ferrule_device_set_timeout(bench.dev, 1) == Status.HANDLE
    bench.bring("initialised")
    assert bench.lib.ferrule_device_set_timeout(bench.dev, 1) == Status.STATE
    assert bench.bind() == Status.OK
    assert bench.lib.ferrule_device_activate(bench.dev) == Status.OK
    assert bench.lib.ferrule_device_open(bench.dev) == Status.OK
    assert 500 <= elapsed(bench) < 510
    assert 90 <= elapsed(bench, 90) < 100
    assert bench.lib.ferrule_device_set_timeout(bench.dev, 700) == Status.OK
    assert 700 <= elapsed(bench) < 710
    assert bench.lib.ferrule_device_set_timeout(bench.dev, 0) == Status.OK
    assert 500 <= elapsed(bench) < 510


def test_a_driver_may_count(bench: Beside) -> None:
    ffi, ask = bench.fake.ffi, bench.lib.ferrule_device_statistic
    names, found = [ffi.new("char[]", name) for name in (b"busy", b"bytes")], ffi.new("struct ferrule_statistic *")

    def statistics(context: object, index: int, wanted: Any) -> bool:  # noqa: ANN401 of cffi
        assert context == bench.context
        if index < len(names):
            wanted.name, wanted.count = names[index], 7 + index
        return index < len(names)

    signature = "bool(const void *, uint32_t, struct ferrule_statistic *)"
    driver, callback = ffi.new("struct ferrule_driver *", bench.driver[0]), ffi.callback(signature, statistics)
    driver.statistics = callback
    assert ask(bench.fake.null, 0, found) == Status.ARGUMENT
    assert ask(bench.dev, 0, found) == Status.HANDLE
    bench.bring("initialised")
    assert ask(bench.dev, 0, found) == Status.STATE
    bench.driver = driver
    assert bench.bind() == Status.OK
    assert [(ask(bench.dev, index, found), found.count) for index in range(3)] == [
        (Status.OK, 7),
        (Status.OK, 8),
        (Status.ARGUMENT, 8),
    ]
    assert ask(bench.dev, 0, bench.fake.null) == Status.ARGUMENT
    assert bench.lib.ferrule_device_activate(bench.dev) == Status.OK
    assert ask(bench.dev, 1, found) == Status.OK, "also of a device that is in use"
    assert ffi.string(found.name) == b"bytes"


def test_a_driver_without_counts_has_none(bench: Beside) -> None:
    bench.bring("bound")
    found = bench.fake.ffi.new("struct ferrule_statistic *")
    assert bench.lib.ferrule_device_statistic(bench.dev, 0, found) == Status.UNSUPPORTED


@pytest.mark.parametrize(("timeout_us", "refused"), [(2**31 - 1, False), (2**31, True), (DEFAULT - 1, True)])
def test_a_limit_ends_at_half_of_the_clock(bench: Beside, timeout_us: int, refused: bool) -> None:
    """What is longer cannot be told from a time that has passed; nothing is stopped then."""
    expected = Status.ARGUMENT if refused else Status.OK
    bench.open()
    assert bench.submit() == Status.OK
    assert bench.finish(timeout_us) == expected
    assert bench.in_flight == (1 if refused else 0)
    assert bench.lib.ferrule_device_wait(bench.dev, bench.driver.is_over, timeout_us) == expected
    assert bench.lib.ferrule_device_set_timeout(bench.dev, timeout_us) == expected
    assert Event.ABORT not in bench.fake.events()


@pytest.mark.parametrize("timeout_us", [2**31 - 1, 2**31])
def test_a_driver_s_limit_ends_there_too(bench: Beside, timeout_us: int) -> None:
    ffi, lib = bench.fake.ffi, bench.lib
    driver = ffi.new("struct ferrule_driver *", bench.driver[0])
    driver.timeout_us = timeout_us
    expected = Status.OK if timeout_us < 2**31 else Status.ARGUMENT
    bench.bring("initialised")
    assert lib.ferrule_device_bind_driver(bench.dev, driver, bench.context) == expected
    other = bench.fake.storage()
    assert lib.ferrule_device_init(other) == Status.OK
    assert lib.ferrule_device_bind_driver(other, lib.fake_no_driver(), ffi.NULL) == Status.OK
    assert lib.ferrule_device_set_driver(other, driver, bench.context, ffi.NULL) == expected


def test_a_wait_close_to_the_longest_ends(bench: Beside) -> None:
    """Also if the platform's ticks are coarse, and the clock wraps meanwhile."""
    bench.open()
    bench.fake.state.now_us = 2**32 - 5000
    bench.context.poll_us = 10_000_000
    assert 2**31 - 1 <= elapsed(bench, 2**31 - 1) % 2**32 < 2**31 + 10_000_000


def test_a_driver_without_a_limit_has_the_api_s(bench: Beside) -> None:
    bench.driver = bench.fake.bare_driver
    bench.open()
    begin = bench.fake.state.now_us
    never = bench.fake.ffi.callback("bool(void *)", lambda _context: bench.fake.state.now_us - begin > 2_000_000)
    assert bench.lib.ferrule_device_wait(bench.dev, bench.fake.null, DEFAULT) == Status.ARGUMENT
    assert bench.lib.ferrule_device_set_timeout(bench.dev, 1000) == Status.OK
    assert bench.lib.ferrule_device_wait(bench.dev, never, DEFAULT) == Status.TIMEOUT
    assert 1000 <= bench.fake.state.now_us - begin < 1010
    assert bench.lib.ferrule_device_set_timeout(bench.dev, 0) == Status.OK
    bench.fake.state.now_us = begin = 0
    skip = bench.fake.ffi.callback("bool(void *)", lambda _context: later(bench))
    assert bench.lib.ferrule_device_wait(bench.dev, skip, DEFAULT) == Status.TIMEOUT
    assert 1_000_000 <= bench.fake.state.now_us < 1_200_000


def later(bench: Beside) -> bool:
    bench.fake.state.now_us += 100_000
    return False


def test_a_thread_that_could_not_run_looks_once_more(bench: Beside) -> None:
    bench.open()
    bench.context.over_us = 10_000
    assert bench.submit() == Status.OK

    def sleep() -> None:
        bench.fake.state.now_us = 20_000

    bench.fake.during(Event.WAIT, sleep)
    assert bench.finish() == Status.OK


def test_a_driver_without_poll_is_looked_at(bench: Beside) -> None:
    driver = bench.fake.ffi.new("struct ferrule_driver *", bench.fake.beside_driver[0])
    driver.poll_us = bench.fake.null
    bench.driver = driver
    bench.open()
    bench.context.over_us = 60
    assert (bench.submit(), bench.finish()) == (Status.OK, Status.OK)
    assert Event.WAIT not in bench.fake.events()


def test_closing_stops_what_is_in_flight(bench: Beside) -> None:
    bench.open()
    assert bench.submit() == Status.OK
    assert bench.call("close") == Status.OK
    assert bench.fake.events() == [Event.SUBMIT, Event.ABORT, Event.UNLOCK]
    assert bench.call("open") == Status.OK
    assert bench.in_flight == 0
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.ABORT: Status.DEVICE, Event.CUT: Status.UNSUPPORTED})
    assert bench.call("close") == Status.DEVICE
    assert bench.call("close") == Status.STATE


# ---- deadline and cancellation


def test_a_deadline_ends_a_wait(bench: Beside) -> None:
    bench.open()
    bench.context.over_us = DEFAULT
    bench.begin(120)
    assert bench.submit() == Status.OK
    begin = bench.fake.state.now_us
    assert bench.finish() == Status.TIMEOUT
    assert bench.fake.state.now_us - begin < 130
    assert bench.stop.waiting == bench.fake.null
    assert bench.lib.ferrule_stop_status(bench.stop) == Status.TIMEOUT
    bench.begin(None)
    assert bench.lib.ferrule_stop_status(bench.stop) == Status.OK
    assert bench.lib.ferrule_stop_status(bench.fake.null) == Status.OK


def test_what_is_over_at_the_deadline_counts(bench: Beside) -> None:
    bench.open()
    bench.begin(100)
    bench.context.over_us = 100
    assert bench.submit() == Status.OK
    assert bench.finish() == Status.OK


def test_the_clock_wraps(bench: Beside) -> None:
    bench.open()
    bench.fake.state.now_us = 2**32 - 50
    bench.begin(100 - 2**32)
    assert bench.stop.deadline_us == 50
    bench.context.over_us = 2**32 - 1
    assert bench.submit() == Status.OK
    assert bench.lib.ferrule_stop_limit(bench.stop, 1000) <= 100
    bench.fake.state.now_us = 40
    assert bench.lib.ferrule_stop_limit(bench.stop, 1000) <= 10
    assert bench.lib.ferrule_stop_limit(bench.stop, 5) == 5
    assert bench.finish() == Status.TIMEOUT
    assert 50 <= bench.fake.state.now_us < 60
    assert bench.lib.ferrule_stop_limit(bench.stop, 1000) == 0


@pytest.mark.parametrize("when", range(1, 5))
def test_cancelling_ends_a_wait_wherever_it_comes(bench: Beside, when: int) -> None:
    """A request between any two calls of the platform and of the driver ends the wait without a further one."""
    bench.open()
    bench.context.over_us = DEFAULT
    bench.begin()
    assert bench.submit() == Status.OK
    bench.lib.ferrule_device_notify(bench.dev)
    bench.fake.events()
    left = when
    waits = 0

    def happen(event: Event) -> None:
        nonlocal left, waits
        if event not in {Event.LOOK, Event.WAIT}:
            return
        waits += event is Event.WAIT and left < 0
        left -= 1
        if left == 0:
            with bench.fake.interrupt():
                bench.lib.ferrule_stop_request(bench.stop)
            left = -1

    bench.fake.watch(happen)
    status = bench.finish()
    bench.fake.unwatch()
    assert status == Status.CANCELLED
    assert waits <= 1  # one that the notification ends at once
    assert bench.in_flight == 0


def test_cancelling_nothing_that_waits(bench: Beside) -> None:
    bench.open()
    bench.lib.ferrule_stop_request(bench.stop)
    assert bench.lib.ferrule_stop_status(bench.stop) == Status.CANCELLED
    bench.lib.ferrule_device_notify(bench.fake.storage())
    assert bench.call("close") == Status.OK
    assert bench.lib.ferrule_device_open_for(bench.dev, DEFAULT, bench.stop) == Status.CANCELLED
    bench.begin()
    assert bench.lib.ferrule_device_open_for(bench.dev, DEFAULT, bench.stop) == Status.OK


def contend(bench: Beside, timeout_us: int, watcher: object = None) -> tuple[int, int]:
    """Open in a second thread while the first has the device; return the status and how long it took."""
    bench.fake.state.thread = 2
    begin = bench.fake.state.now_us
    if callable(watcher):
        bench.fake.watch(watcher)
    status = int(bench.lib.ferrule_device_open_for(bench.dev, timeout_us, bench.stop))
    bench.fake.unwatch()
    bench.fake.state.thread = 1
    return status, int(bench.fake.state.now_us - begin)


def passes(bench: Beside) -> object:
    """Return a watcher by which each wait for the lock takes its time."""

    def happen(event: Event) -> None:
        if event is Event.LOCK:
            bench.fake.state.now_us += 10_000

    return happen


def test_opening_waits_for_the_lock_in_slices(bench: Beside) -> None:
    bench.bring("open")
    bench.fake.state.open_timeout_us = 45_000
    assert contend(bench, DEFAULT, passes(bench))[0] == Status.TIMEOUT
    assert bench.fake.events().count(Event.LOCK) == 5
    assert contend(bench, 25_000, passes(bench))[0] == Status.TIMEOUT
    assert bench.fake.events().count(Event.LOCK) == 3
    assert contend(bench, 5_000)[0] == Status.TIMEOUT
    assert bench.fake.state.lock_timeout_us <= 5_000


def test_opening_without_a_stop_waits_once(bench: Beside) -> None:
    bench.bring("open")
    with bench.fake.thread(2):
        assert bench.lib.ferrule_device_open_for(bench.dev, 7, bench.fake.null) == Status.TIMEOUT
        assert bench.fake.state.lock_timeout_us == 7
        assert bench.call("open") == Status.TIMEOUT
        assert bench.fake.state.lock_timeout_us == bench.fake.state.open_timeout_us


def test_a_deadline_and_a_request_end_the_wait_for_the_lock(bench: Beside) -> None:
    bench.bring("open")
    bench.fake.state.open_timeout_us = 100_000
    bench.begin(15_000)
    status, took = contend(bench, DEFAULT, passes(bench))
    assert (status, took < 40_000) == (Status.TIMEOUT, True)
    bench.begin()
    slow = passes(bench)
    assert callable(slow)

    def happen(event: Event) -> None:
        slow(event)
        if event is Event.LOCK:
            bench.lib.ferrule_stop_request(bench.stop)

    assert contend(bench, DEFAULT, happen)[0] == Status.CANCELLED
    assert bench.fake.events().count(Event.LOCK) == 3


def test_a_platform_that_cannot_wait_says_so_once(bench: Beside) -> None:
    bench.bring("open")
    bench.fake.state.lock_refusal = Status.BUSY
    bench.fake.events()
    assert contend(bench, DEFAULT)[0] == Status.BUSY
    assert bench.fake.events() == [Event.LOCK]
