# SPDX-License-Identifier: Apache-2.0
"""Devices that are given up: stopped, cut or lost, and what finds a lost one again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_device import CALLS, DEFAULT, Beside, Event

from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc


@pytest.fixture
def bench() -> Iterator[Beside]:
    made = Beside()
    yield made
    made.fake.done()


def test_commands_that_cannot_be_stopped_are_the_error(bench: Beside) -> None:
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.FINISH: Status.FAILED, **LOSS})
    assert bench.finish() == Status.DEVICE
    assert bench.lib.ferrule_device_is_lost(bench.dev)


@pytest.mark.parametrize("event", [Event.FINISH, Event.WAIT])
def test_an_error_stops_all_commands(bench: Beside, event: Event) -> None:
    bench.open()
    bench.context.over_us = DEFAULT if event is Event.WAIT else 0
    assert [bench.submit(), bench.submit()] == [Status.OK, Status.OK]
    bench.fake.fail({event: Status.FAILED})
    assert bench.finish() == Status.FAILED
    assert bench.in_flight == 0
    assert bench.fake.events()[-1] is Event.ABORT
    assert bench.call("close") == Status.OK
    assert bench.call("open") == Status.OK


def test_a_device_that_does_not_stop_loses_its_power(bench: Beside) -> None:
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.FINISH: Status.DEVICE, Event.ABORT: Status.DEVICE})
    assert bench.finish() == Status.DEVICE
    assert bench.fake.events()[-2:] == [Event.ABORT, Event.CUT]
    assert not bench.lib.ferrule_device_is_lost(bench.dev)
    assert bench.call("close") == Status.OK
    bench.fake.events()
    bench.fake.fail({Event.POWER_ON: Status.UNAVAILABLE})
    assert bench.call("open") == Status.UNAVAILABLE
    bench.fake.fail({})
    assert bench.call("open") == Status.OK
    opened = [Event.POWER_ON, Event.ACTIVATE, Event.READY, Event.CHECK]
    assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, Event.UNLOCK, Event.LOCK, *opened]
    assert (bench.call("close"), bench.call("open")) == (Status.OK, Status.OK)
    assert Event.POWER_ON not in bench.fake.events()


def test_a_device_whose_power_was_cut_is_off_already(bench: Beside) -> None:
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.ABORT: Status.DEVICE})
    assert bench.call("close") == Status.OK
    bench.fake.events()
    assert bench.call("deactivate") == Status.OK
    assert bench.fake.events() == [Event.LOCK, Event.UNLOCK]
    bench.fake.fail({})
    assert (bench.call("activate"), bench.call("open")) == (Status.OK, Status.OK)


def test_a_device_whose_driver_fails_after_a_cut_is_switched_off_once(bench: Beside) -> None:
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.ABORT: Status.DEVICE, Event.ACTIVATE: Status.FAILED})
    assert bench.call("close") == Status.OK
    bench.fake.events()
    assert bench.call("open") == Status.FAILED
    assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, Event.ACTIVATE, Event.POWER_OFF, Event.UNLOCK]
    assert bench.call("deactivate") == Status.OK
    assert bench.fake.events() == [Event.LOCK, Event.UNLOCK]


LOSS = {Event.ABORT: Status.DEVICE, Event.CUT: Status.UNSUPPORTED}


def lose(bench: Beside) -> None:
    """Lose the open device."""
    assert bench.submit() == Status.OK
    bench.fake.fail(LOSS)
    assert bench.call("abort") == Status.DEVICE
    assert bench.lib.ferrule_device_is_lost(bench.dev)
    assert bench.in_flight == 0
    assert bench.call("close") == Status.OK
    bench.fake.events()


def test_a_device_that_cannot_be_stopped_is_lost(bench: Beside) -> None:
    bench.open()
    lose(bench)
    assert bench.call("recover") == Status.DEVICE
    assert bench.fake.events() == [Event.LOCK, Event.ABORT, Event.CUT, Event.UNLOCK]
    assert bench.call("open") == Status.DEVICE
    assert bench.fake.events() == [Event.LOCK, Event.ABORT, Event.CUT, Event.UNLOCK]
    bench.fake.fail({})
    assert bench.call("recover") == Status.OK
    assert not bench.lib.ferrule_device_is_lost(bench.dev)
    assert bench.call("recover") == Status.OK  # nothing to do
    assert bench.fake.events() == [Event.LOCK, Event.ABORT, Event.UNLOCK]
    assert bench.call("open") == Status.OK


def test_a_lost_device_is_found_by_opening_it(bench: Beside) -> None:
    bench.open()
    lose(bench)
    bench.fake.fail({Event.ABORT: Status.DEVICE})  # now its power can be cut
    assert bench.call("open") == Status.OK
    again = [Event.ABORT, Event.CUT, Event.POWER_ON, Event.ACTIVATE, Event.READY, Event.CHECK]
    assert bench.fake.events() == [Event.LOCK, *again]
    assert not bench.lib.ferrule_device_is_lost(bench.dev)


OFF = [Event.DEACTIVATE, Event.POWER_OFF]


def lose_and_switch_off(bench: Beside) -> None:
    """Lose the open device, and deactivate it, which neither stops nor finds it."""
    lose(bench)
    assert bench.call("deactivate") == Status.DEVICE
    assert bench.lib.ferrule_device_is_lost(bench.dev)
    assert bench.fake.events() == [Event.LOCK, Event.ABORT, Event.CUT, *OFF, Event.UNLOCK]
    assert bench.call("deactivate") == Status.STATE


def test_a_lost_device_that_is_off_stays_lost_until_it_is_stopped(bench: Beside) -> None:
    """Neither an activation that succeeds nor power that is switched off and on says that it has stopped."""
    bench.open()
    lose_and_switch_off(bench)
    powered = [Event.LOCK, Event.POWER_ON, Event.ABORT, Event.CUT, Event.POWER_OFF, Event.UNLOCK]
    for name in ("recover", "activate"):
        assert bench.call(name) == Status.DEVICE
        assert bench.lib.ferrule_device_is_lost(bench.dev)
        assert bench.fake.events() == powered
    assert (bench.call("open"), bench.call("destroy")) == (Status.STATE, Status.DEVICE)
    for faults in ({Event.POWER_ON: Status.UNAVAILABLE}, {Event.LOCK: Status.FAILED}):
        bench.fake.fail(faults)
        assert bench.call("recover") == bench.call("activate") == next(iter(faults.values()))
        assert bench.lib.ferrule_device_is_lost(bench.dev)
    bench.fake.events()
    bench.fake.fail({})
    assert bench.call("recover") == Status.OK
    assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, Event.ABORT, Event.POWER_OFF, Event.UNLOCK]
    assert not bench.lib.ferrule_device_is_lost(bench.dev)
    assert (bench.call("activate"), bench.call("open")) == (Status.OK, Status.OK)


def test_a_lost_device_that_is_off_is_found_by_a_cut(bench: Beside) -> None:
    bench.open()
    lose_and_switch_off(bench)
    bench.fake.fail({Event.ABORT: Status.DEVICE})
    assert bench.call("recover") == Status.OK
    assert Event.POWER_OFF not in bench.fake.events()
    assert not bench.lib.ferrule_device_is_lost(bench.dev)
    bench.fake.fail({})
    assert bench.call("destroy") == Status.OK


def test_a_lost_device_is_found_by_its_last_deactivation_or_next_activation(bench: Beside) -> None:
    bench.open()
    lose(bench)
    bench.fake.fail({})
    assert bench.call("deactivate") == Status.OK
    assert bench.fake.events() == [Event.LOCK, Event.ABORT, *OFF, Event.UNLOCK]
    assert not bench.lib.ferrule_device_is_lost(bench.dev)
    assert (bench.call("activate"), bench.call("open")) == (Status.OK, Status.OK)
    bench.fake.events()
    lose_and_switch_off(bench)
    bench.fake.fail({})
    assert bench.call("activate") == Status.OK
    stopped = [Event.POWER_ON, Event.ABORT, Event.POWER_OFF]
    assert bench.fake.events()[1:-1] == [*stopped, Event.POWER_ON, Event.ACTIVATE]
    assert not bench.lib.ferrule_device_is_lost(bench.dev)
    assert bench.call("open") == Status.OK
    lose(bench)
    bench.fake.fail({Event.ABORT: Status.DEVICE})
    assert bench.call("deactivate") == Status.OK  # it was cut
    assert bench.fake.events() == [Event.LOCK, Event.ABORT, Event.CUT, Event.UNLOCK]
    assert bench.call("destroy") == Status.OK


def busy_after_abort(bench: Beside, looks: int) -> None:
    """Let the device stop only that many looks after its abort."""
    left = 0

    def happen(event: Event) -> None:
        nonlocal left
        if event is Event.ABORT:
            left = looks
        if event is Event.STOPPED:
            bench.fake.state.results[Event.STOPPED] = Status.DEVICE if left > 0 else Status.OK
            bench.fake.state.now_us += 100
            left -= 1

    bench.fake.watch(happen)


@pytest.mark.parametrize(("looks", "cut"), [(0, False), (3, False), (9, False), (12, True)])
def test_an_abort_counts_if_the_device_confirms_it(bench: Beside, looks: int, cut: bool) -> None:
    """In a millisecond; a driver's FERRULE_OK alone is nothing."""
    bench.open()
    busy_after_abort(bench, looks)
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.FINISH: Status.FAILED})
    begin = bench.fake.state.now_us
    assert bench.finish() == Status.FAILED
    assert (Event.CUT in bench.fake.events()) == cut
    assert bench.fake.state.now_us - begin < 1300
    bench.fake.unwatch()
    assert not bench.lib.ferrule_device_is_lost(bench.dev)


def test_an_abort_that_the_device_does_not_confirm_loses_it(bench: Beside) -> None:
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.FINISH: Status.FAILED, Event.STOPPED: Status.DEVICE, Event.CUT: Status.FAILED})
    assert bench.finish() == Status.DEVICE
    assert bench.lib.ferrule_device_is_lost(bench.dev)
    assert bench.call("close") == Status.OK
    assert bench.call("recover") == Status.DEVICE
    bench.fake.fail({})
    assert bench.call("recover") == Status.OK


@pytest.mark.parametrize(("faults", "status"), [({}, Status.TIMEOUT), (None, Status.DEVICE)])
@pytest.mark.parametrize("in_flight", [0, 1])
def test_a_wait_that_fails_stops_the_device(
    bench: Beside, faults: dict[Event, int] | None, status: Status, in_flight: int
) -> None:
    """Whether or not a command is in flight: an operator of a driver without submit has none."""
    bench.open()
    for _ in range(in_flight):
        assert bench.submit() == Status.OK
    bench.context.over_us = DEFAULT
    bench.fake.events()
    bench.fake.fail(LOSS if faults is None else faults)
    assert bench.lib.ferrule_device_wait(bench.dev, bench.driver.is_over, 100) == status
    assert bench.lib.ferrule_device_is_lost(bench.dev) == (faults is None)
    stopped = [event for event in bench.fake.events() if event not in (Event.LOOK, Event.WAIT)]
    assert stopped == ([Event.ABORT] if faults is not None else [Event.ABORT, Event.CUT])
    assert bench.in_flight == 0
    assert bench.lib.ferrule_device_wait(bench.dev, bench.fake.null, 100) == (status if faults is None else -1)
    assert Event.ABORT not in bench.fake.events()  # a wrong argument stops nothing
    bench.fake.fail({})
    assert bench.call("close") == Status.OK
    assert bench.call("open") == Status.OK


def test_a_wait_that_ends_well_stops_nothing(bench: Beside) -> None:
    bench.open()
    bench.context.over_us = bench.fake.state.now_us + 50
    assert bench.lib.ferrule_device_wait(bench.dev, bench.driver.is_over, 100) == Status.OK
    assert set(bench.fake.events()) == {Event.LOOK, Event.WAIT}


def test_an_abort_that_nothing_confirms_is_not_believed(bench: Beside) -> None:
    """The driver cannot read whether its device has stopped, so the platform cuts it all the same."""
    ffi = bench.fake.ffi
    driver = bench.driver = ffi.new("struct ferrule_driver *", bench.fake.beside_driver[0])
    driver.is_stopped = ffi.NULL
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.FINISH: Status.FAILED})
    assert bench.finish() == Status.FAILED
    assert bench.fake.events()[-2:] == [Event.ABORT, Event.CUT]
    assert (bench.call("close"), bench.call("open")) == (Status.OK, Status.OK)


def test_a_wait_that_is_cancelled_stops_the_device(bench: Beside) -> None:
    bench.open()
    bench.context.over_us = DEFAULT
    bench.fake.during(Event.WAIT, lambda: bench.lib.ferrule_stop_request(bench.stop))
    assert bench.lib.ferrule_device_wait(bench.dev, bench.driver.is_over, DEFAULT) == Status.CANCELLED
    assert bench.fake.events()[-1] is Event.ABORT


@pytest.mark.parametrize("lost", [False, True])
def test_an_open_device_that_was_cut_or_lost_takes_nothing(bench: Beside, lost: bool) -> None:
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail(LOSS if lost else {Event.ABORT: Status.DEVICE})
    assert bench.call("abort") == (Status.DEVICE if lost else Status.OK)
    bench.fake.events()
    for name, call in CALLS[:-1]:
        assert call(bench, bench.dev) == Status.DEVICE, name
    for name in ("copy_to", "copy_from", "context"):
        assert bench.call(name) == Status.DEVICE, name
    assert bench.fake.events() == []
    assert bench.call("abort") == (Status.DEVICE if lost else Status.OK)
    assert bench.fake.events() == ([Event.ABORT, Event.CUT] if lost else [])  # what is cut stays so
    assert bench.call("close") == Status.OK
    bench.fake.fail({})
    assert (bench.call("open"), bench.submit(), bench.finish()) == (Status.OK,) * 3


def test_closing_stops_what_an_operator_left_at_work(bench: Beside) -> None:
    bench.open()
    bench.fake.during(Event.ABORT, lambda: bench.fake.fail({}))
    bench.fake.fail({Event.STOPPED: Status.DEVICE})
    assert bench.call("close") == Status.OK
    assert bench.fake.events() == [Event.ABORT, Event.UNLOCK]
    assert bench.call("open") == Status.OK
    bench.fake.fail({Event.STOPPED: Status.DEVICE, **LOSS})
    assert bench.call("close") == Status.DEVICE
    assert bench.lib.ferrule_device_is_lost(bench.dev)
    bench.fake.fail({})
    assert bench.call("recover") == Status.OK


def test_a_device_that_works_when_it_is_activated_is_stopped(bench: Beside) -> None:
    """The core was restarted and the device was not, or it ignores its reset."""
    bench.bring("bound")
    bench.fake.during(Event.ABORT, lambda: bench.fake.fail({}))
    bench.fake.fail({Event.STOPPED: Status.DEVICE})
    assert bench.call("activate") == Status.OK
    assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, Event.ACTIVATE, Event.ABORT, Event.UNLOCK]
    assert bench.call("deactivate") == Status.OK
    bench.fake.events()
    for cut in (True, False):
        bench.fake.fail({Event.STOPPED: Status.DEVICE} | ({} if cut else {Event.CUT: Status.UNSUPPORTED}))
        assert bench.call("activate") == Status.DEVICE
        stopped = [Event.ACTIVATE, Event.ABORT, Event.CUT, *(() if cut else (Event.POWER_OFF,))]
        assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, *stopped, Event.UNLOCK]
        assert bench.lib.ferrule_device_is_lost(bench.dev) == (not cut)
    bench.fake.fail({})
    assert bench.call("activate") == Status.OK


def test_a_device_that_works_after_a_cut_is_not_fine(bench: Beside) -> None:
    """The platform said that it was cut, and the device says that it is not."""
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail({Event.ABORT: Status.DEVICE})
    assert bench.call("close") == Status.OK
    bench.fake.fail({Event.STOPPED: Status.DEVICE, **LOSS})
    assert bench.call("open") == Status.DEVICE
    assert bench.lib.ferrule_device_is_lost(bench.dev)
    bench.fake.fail({})
    assert bench.call("open") == Status.OK


@pytest.mark.parametrize("abort", [False, True])
@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize("can_cut", [False, True])
@pytest.mark.parametrize("kind", ["passive", "passive with commands", "unstated"])
def test_a_device_that_nothing_could_stop_is_not_bound(kind: str, abort: bool, is_stopped: bool, can_cut: bool) -> None:
    """Nor is it given to a handle that was bound without its driver."""
    bench = Beside()
    ffi, lib, fake = bench.fake.ffi, bench.lib, bench.fake
    beside = fake.beside_driver[0]
    driver = bench.driver = ffi.new("struct ferrule_driver *", fake.bare_driver[0] if kind == "passive" else beside)
    driver.is_passive = kind != "unstated"
    driver.abort = beside.abort if abort else ffi.NULL
    driver.is_stopped = beside.is_stopped if is_stopped else ffi.NULL
    fake.state.cannot_cut = not can_cut
    stoppable = {"passive": True, "passive with commands": abort, "unstated": can_cut or (abort and is_stopped)}[kind]
    expected = Status.OK if stoppable else Status.UNSTOPPABLE
    assert bench.call("init") == Status.OK
    assert bench.bind() == expected
    bench.dev = fake.storage()
    bench.context = fake.context(bench.dev)
    assert bench.call("init") == Status.OK
    assert lib.fake_bind(bench.dev, lib.fake_no_driver(), ffi.NULL) == Status.OK
    assert lib.ferrule_device_set_driver(bench.dev, driver, bench.context, ffi.NULL) == expected
    assert bench.call("activate") == Status.OK
    fake.done()


def test_a_passive_device_is_believed(bench: Beside) -> None:
    """It cannot write to memory, so its abort is sufficient; without commands, there is nothing to stop."""
    ffi = bench.fake.ffi
    driver = bench.driver = ffi.new("struct ferrule_driver *", bench.fake.beside_driver[0])
    driver.is_passive, driver.is_stopped = True, ffi.NULL
    bench.open()
    bench.context.over_us = DEFAULT
    assert bench.submit() == Status.OK
    assert bench.finish() == Status.TIMEOUT
    assert bench.fake.events()[-1] is Event.ABORT
    assert bench.submit() == Status.OK
    bench.fake.fail(LOSS)
    assert bench.finish() == Status.DEVICE
    assert bench.lib.ferrule_device_is_lost(bench.dev)
    bench.fake.fail({})
    assert bench.call("close") == Status.OK
    assert bench.call("open") == Status.OK
    bench.fake.events()
    driver.abort = driver.finish = ffi.NULL  # as in a driver without commands
    assert bench.lib.ferrule_device_wait(bench.dev, driver.is_over, 10) == Status.TIMEOUT
    assert Event.CUT not in bench.fake.events()
    assert bench.call("close") == Status.OK


def test_recovering_wants_a_handle_and_waits_for_the_owner(bench: Beside) -> None:
    assert bench.lib.ferrule_device_recover(bench.fake.null) == Status.ARGUMENT
    assert not bench.lib.ferrule_device_is_lost(bench.fake.null)
    assert not bench.lib.ferrule_device_is_lost(bench.dev)
    bench.open()
    assert bench.submit() == Status.OK
    bench.fake.fail(LOSS)
    assert bench.call("abort") == Status.DEVICE
    with bench.fake.thread(2):
        assert bench.call("recover") == Status.TIMEOUT
    bench.fake.fail({})
    assert bench.call("close") == Status.OK


def test_a_driver_without_abort_has_its_power_cut(bench: Beside) -> None:
    """Also one that says that its device has stopped: the commands of its queue are not forgotten."""
    ffi = bench.fake.ffi
    driver = ffi.new("struct ferrule_driver *", bench.fake.beside_driver[0])
    driver.abort = ffi.NULL
    bench.driver = driver
    bench.open()
    assert bench.submit() == Status.OK
    assert bench.call("abort") == Status.OK
    assert bench.fake.events() == [Event.SUBMIT, Event.CUT]
    assert (bench.call("close"), bench.call("open")) == (Status.OK, Status.OK)
    driver.is_over, driver.poll_us, driver.depth = ffi.NULL, ffi.NULL, 0
    assert [bench.submit(), bench.submit()] == [Status.OK, Status.BUSY]  # the depth is 1
    assert bench.finish() == Status.OK  # its finish waits by itself
    driver.finish = ffi.NULL
    assert bench.submit() == Status.OK
    assert bench.finish() == Status.STATE
