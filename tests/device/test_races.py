# SPDX-License-Identifier: Apache-2.0
"""Another thread interrupts: at every call of the platform, a test lets it do the worst."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fake_device import Bench, Event, library

from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(library())
    yield bench
    bench.fake.done()


def other(bench: Bench, *names: str, results: list[int]) -> Callable[[], None]:
    """Return an action in which thread 2 makes the named calls."""

    def act() -> None:
        with bench.fake.thread(2):
            results.extend(bench.call(name) for name in names)

    return act


@pytest.mark.parametrize("refusal", [Status.TIMEOUT, Status.BUSY])
def test_a_second_thread_gets_what_the_lock_says(bench: Bench, refusal: Status) -> None:
    bench.bring("foreign")
    bench.fake.state.lock_refusal = refusal
    assert bench.call("open") == refusal
    bench.fake.state.thread = 1
    assert bench.call("close") == Status.OK
    bench.fake.state.thread = 2
    assert bench.call("open") == Status.OK


def test_a_foreign_thread_can_neither_close_nor_copy(bench: Bench) -> None:
    bench.bring("foreign")
    for name in ("close", "copy_to", "copy_from", "context"):
        assert bench.call(name) == Status.OWNER
    assert bench.call("deactivate") == Status.BUSY
    bench.fake.state.thread = 1
    assert bench.call("copy_to") == Status.OK


def test_destroy_leaves_the_handle_to_a_thread_that_waits(bench: Bench) -> None:
    bench.bring("open")
    results: list[int] = []

    def owner_leaves() -> None:
        with bench.fake.thread(1):
            results.extend(bench.call(name) for name in ("close", "deactivate", "destroy"))

    bench.fake.during(Event.LOCK, owner_leaves)  # this hook runs once, although deactivating takes the lock, too
    bench.fake.state.thread = 2
    assert bench.call("open") == Status.STATE, "deactivated while it waited"
    assert results == [Status.OK, Status.OK, Status.BUSY]
    assert bench.fake.events()[-1] == Event.UNLOCK
    assert bench.call("destroy") == Status.OK


@pytest.mark.parametrize("event", [Event.LOCK, Event.UNLOCK])
@pytest.mark.parametrize("name", ["activate", "open"])
def test_destroy_waits_for_whoever_is_in_a_call(bench: Bench, name: str, event: Event) -> None:
    bench.bring("bound" if name == "activate" else "active")
    results: list[int] = []
    bench.fake.during(event, other(bench, "destroy", results=results))
    if name == "open" and event is Event.UNLOCK:
        bench.fake.fail({Event.CHECK: Status.DEVICE})
    bench.call(name)
    assert results == [Status.BUSY]


def test_destroy_waits_for_the_end_of_a_deactivation(bench: Bench) -> None:
    bench.bring("active")
    results: list[int] = []
    bench.fake.during(Event.UNLOCK, other(bench, "destroy", results=results))
    assert bench.call("deactivate") == Status.OK
    assert results == [Status.BUSY]


def test_a_handle_that_is_destroyed_before_the_guard_comes_is_none(bench: Bench) -> None:
    bench.bring("bound")
    results: list[int] = []
    bench.fake.during(Event.GUARD, other(bench, "destroy", results=results))
    assert bench.call("activate") == Status.HANDLE
    assert results == [Status.OK]


def test_two_threads_that_activate_power_it_once(bench: Bench) -> None:
    bench.bring("bound")
    results: list[int] = []
    bench.fake.during(Event.LOCK, other(bench, "activate", results=results))
    assert bench.call("activate") == Status.OK
    assert results == [Status.OK]
    assert bench.fake.events().count(Event.POWER_ON) == 1
    assert bench.lib.fake_activations(bench.dev) == 2


@pytest.mark.parametrize("event", [Event.POWER_ON, Event.ACTIVATE])
def test_nothing_happens_to_a_device_while_its_power_goes_up(bench: Bench, event: Event) -> None:
    bench.bring("bound")
    results: list[int] = []
    calls = ("activate", "open", "close", "deactivate", "copy_to", "bind", "destroy")
    bench.fake.during(event, other(bench, *calls, results=results))
    assert bench.call("activate") == Status.OK
    expected = (Status.TIMEOUT, Status.STATE, Status.STATE, Status.STATE, Status.STATE, Status.STATE, Status.BUSY)
    assert results == list(expected)
    assert bench.lib.fake_activations(bench.dev) == 1


@pytest.mark.parametrize("event", [Event.DEACTIVATE, Event.POWER_OFF])
def test_nothing_happens_to_a_device_while_its_power_goes_down(bench: Bench, event: Event) -> None:
    bench.bring("active")
    results: list[int] = []
    bench.fake.during(event, other(bench, "activate", "open", "deactivate", "destroy", results=results))
    assert bench.call("deactivate") == Status.OK
    assert results == [Status.TIMEOUT, Status.STATE, Status.STATE, Status.BUSY]
    assert bench.lib.fake_activations(bench.dev) == 0


@pytest.mark.parametrize("event", [Event.READY, Event.CHECK])
def test_nothing_happens_to_a_device_while_it_is_opened(bench: Bench, event: Event) -> None:
    bench.bring("active")
    results: list[int] = []
    calls = ("open", "close", "deactivate", "copy_to", "destroy")
    bench.fake.during(event, other(bench, *calls, results=results))
    assert bench.call("open") == Status.OK
    assert results == [Status.TIMEOUT, Status.STATE, Status.TIMEOUT, Status.STATE, Status.BUSY]
    assert bench.call("copy_to") == Status.OK


def test_of_two_threads_that_deactivate_one_is_out_of_order(bench: Bench) -> None:
    bench.bring("active")
    results: list[int] = []
    bench.fake.during(Event.LOCK, other(bench, "deactivate", results=results))
    assert bench.call("deactivate") == Status.STATE
    assert results == [Status.OK]
    assert bench.fake.events().count(Event.POWER_OFF) == 1


def test_an_activation_that_comes_before_the_last_deactivation_keeps_the_power(bench: Bench) -> None:
    bench.bring("active")
    results: list[int] = []
    bench.fake.during(Event.LOCK, other(bench, "activate", results=results))
    assert bench.call("deactivate") == Status.OK
    assert results == [Status.OK]
    assert Event.POWER_OFF not in bench.fake.events()
    assert bench.lib.fake_activations(bench.dev) == 1


@pytest.mark.parametrize(
    ("event", "during", "before"), [(Event.ACTIVATE, "activate", "bound"), (Event.DEACTIVATE, "deactivate", "active")]
)
def test_a_driver_that_calls_its_own_device_is_refused(bench: Bench, event: Event, during: str, before: str) -> None:
    bench.bring(before)
    results: list[int] = []
    calls = ("activate", "open", "deactivate", "destroy")
    bench.fake.during(event, lambda: results.extend(bench.call(name) for name in calls))
    assert bench.call(during) == Status.OK
    assert results == [Status.STATE, Status.STATE, Status.STATE, Status.BUSY]


def test_a_check_that_calls_its_own_device_is_refused(bench: Bench) -> None:
    bench.bring("active")
    results: list[int] = []
    calls = ("open", "close", "deactivate", "copy_to", "destroy")
    bench.fake.during(Event.CHECK, lambda: results.extend(bench.call(name) for name in calls))
    assert bench.call("open") == Status.OK
    assert results == [Status.STATE, Status.STATE, Status.STATE, Status.STATE, Status.BUSY]


def test_an_interrupt_between_two_calls_of_the_platform_changes_nothing(bench: Bench) -> None:
    bench.bring("bound")
    results: list[int] = []

    def interrupt() -> None:
        with bench.fake.interrupt():
            results.extend(bench.call(name) for name in ("activate", "deactivate", "open", "close", "destroy"))

    for event in (Event.LOCK, Event.POWER_ON, Event.ACTIVATE, Event.UNLOCK):
        bench.fake.during(event, interrupt)
        assert bench.call("activate") == Status.OK
        assert bench.call("deactivate") == Status.OK
    assert results == [Status.INTERRUPT] * 20
