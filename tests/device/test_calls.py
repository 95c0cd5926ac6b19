# SPDX-License-Identifier: Apache-2.0
"""The calls of platform and driver that an API call makes, their order, and the state after an error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_device import Bench, Event, library

from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc

UP = [Event.LOCK, Event.POWER_ON, Event.ACTIVATE, Event.UNLOCK]
DOWN = [Event.LOCK, Event.DEACTIVATE, Event.POWER_OFF, Event.UNLOCK]


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(library())
    yield bench
    bench.fake.done()


def test_power_goes_up_once_and_down_once(bench: Bench) -> None:
    bench.bring("bound")
    assert [bench.call("activate") for _ in range(3)] == [Status.OK] * 3
    assert bench.fake.events() == UP
    assert [bench.call("deactivate") for _ in range(4)] == [Status.OK] * 3 + [Status.STATE]
    assert bench.fake.events() == DOWN


def test_without_power_the_driver_is_not_called(bench: Bench) -> None:
    bench.bring("bound")
    bench.fake.fail({Event.POWER_ON: Status.UNAVAILABLE})
    assert bench.call("activate") == Status.UNAVAILABLE
    assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, Event.UNLOCK]
    assert bench.call("open") == Status.STATE
    bench.fake.fail({})
    assert bench.call("activate") == Status.OK


def test_a_driver_that_does_not_activate_loses_its_power(bench: Bench) -> None:
    bench.bring("bound")
    bench.fake.fail({Event.ACTIVATE: Status.DEVICE, Event.POWER_OFF: Status.FAILED})
    assert bench.call("activate") == Status.DEVICE
    assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, Event.ACTIVATE, Event.POWER_OFF, Event.UNLOCK]
    assert bench.call("deactivate") == Status.STATE


@pytest.mark.parametrize(
    ("faults", "status"),
    [
        ({Event.DEACTIVATE: Status.DEVICE}, Status.DEVICE),
        ({Event.POWER_OFF: Status.FAILED}, Status.FAILED),
        ({Event.DEACTIVATE: Status.DEVICE, Event.POWER_OFF: Status.FAILED}, Status.DEVICE),
        ({Event.UNLOCK: Status.FAILED, Event.POWER_OFF: Status.UNAVAILABLE}, Status.UNAVAILABLE),
    ],
)
def test_deactivating_goes_on_after_an_error(bench: Bench, faults: dict[Event, Status], status: Status) -> None:
    bench.bring("active")
    bench.fake.fail(faults)
    assert bench.call("deactivate") == status
    assert bench.fake.events() == DOWN
    assert bench.call("destroy") == Status.OK


@pytest.mark.parametrize("event", [Event.READY, Event.CHECK])
def test_a_device_that_fails_the_check_is_not_left_locked(bench: Bench, event: Event) -> None:
    bench.bring("active")
    bench.fake.fail({event: Status.UNAVAILABLE, Event.UNLOCK: Status.FAILED})
    assert bench.call("open") == Status.UNAVAILABLE
    assert bench.fake.events()[-1] == Event.UNLOCK
    bench.fake.fail({})
    with bench.fake.thread(2):
        assert bench.call("open") == Status.OK


def test_a_lock_that_fails_to_open_is_told_and_the_handle_is_free(bench: Bench) -> None:
    bench.bring("open")
    bench.fake.fail({Event.UNLOCK: Status.FAILED})
    assert bench.call("close") == Status.FAILED
    assert bench.call("close") == Status.STATE


def test_an_activation_whose_unlocking_fails_counts(bench: Bench) -> None:
    bench.bring("bound")
    bench.fake.fail({Event.UNLOCK: Status.FAILED})
    assert bench.call("activate") == Status.FAILED
    assert bench.lib.fake_activations(bench.dev) == 1


def test_counting_ends_before_it_overflows(bench: Bench) -> None:
    bench.bring("active")
    bench.lib.fake_set_activations(bench.dev, 2**32 - 1)
    assert bench.call("activate") == Status.STATE
    assert bench.lib.fake_activations(bench.dev) == 2**32 - 1


def test_a_platform_without_locks_left_makes_no_handle(bench: Bench) -> None:
    bench.fake.fail({Event.INIT: Status.MEMORY})
    assert bench.call("init") == Status.MEMORY
    assert bench.call("destroy") == Status.HANDLE
    bench.fake.fail({})
    assert bench.call("init") == Status.OK


def test_destroy_ends_the_handle_even_if_the_platform_complains(bench: Bench) -> None:
    bench.bring("bound")
    bench.fake.fail({Event.DESTROY: Status.FAILED})
    assert bench.call("destroy") == Status.FAILED
    assert bench.call("activate") == Status.HANDLE


def test_a_handle_can_be_made_again(bench: Bench) -> None:
    for _ in range(2):
        bench.bring("open")
        assert [bench.call(name) for name in ("close", "deactivate", "destroy")] == [Status.OK] * 3


def test_a_handle_that_was_overwritten_is_none(bench: Bench) -> None:
    bench.bring("active")
    bench.lib.fake_set_state(bench.dev, 0x46444233)
    assert bench.call("open") == Status.HANDLE


def test_bind_wants_a_driver(bench: Bench) -> None:
    bench.bring("initialised")
    assert bench.lib.fake_bind(bench.dev, bench.fake.null, bench.fake.null) == Status.ARGUMENT
    assert bench.bind() == Status.OK


def test_an_adapter_that_forgets_to_ask_may_not_bind_twice(bench: Bench) -> None:
    bench.bring("bound")
    again = bench.lib.ferrule_device_bind_driver(bench.dev, bench.fake.bare_driver, bench.fake.null)
    assert again == Status.STATE


def test_a_driver_without_functions_needs_nothing(bench: Bench) -> None:
    bench.bring("initialised")
    dev = bench.dev
    assert bench.lib.fake_bind(dev, bench.fake.bare_driver, bench.fake.null) == Status.OK
    assert [bench.call(name) for name in ("activate", "open")] == [Status.OK, Status.OK]
    assert bench.call("copy_to") == Status.UNSUPPORTED
    assert bench.call("copy_from") == Status.UNSUPPORTED
    assert [bench.call(name) for name in ("close", "deactivate")] == [Status.OK, Status.OK]
    called = set(bench.fake.events())
    assert not called & {Event.ACTIVATE, Event.DEACTIVATE, Event.CHECK, Event.COPY_TO, Event.COPY_FROM}


def test_what_was_copied_comes_back(bench: Bench) -> None:
    bench.bring("open")
    back = bench.fake.ffi.new("uint8_t[3]")
    assert bench.lib.ferrule_device_copy_to(bench.dev, 61, b"abc", 3) == Status.OK
    assert bench.lib.ferrule_device_copy_from(bench.dev, back, 61, 3) == Status.OK
    assert bytes(back) == b"abc"


@pytest.mark.parametrize(
    ("offset", "size_bytes", "null", "status"),
    [
        (0, 64, False, Status.OK),
        (64, 0, False, Status.OK),
        (0, 0, True, Status.OK),
        (65, 0, False, Status.ARGUMENT),
        (61, 4, False, Status.ARGUMENT),
        (0, 4, True, Status.ARGUMENT),
        (2**32 - 1, 2, False, Status.ARGUMENT),
        (1, 2**64 - 1, False, Status.ARGUMENT),
    ],
)
def test_copies_stay_inside(bench: Bench, offset: int, size_bytes: int, null: bool, status: Status) -> None:
    bench.bring("open")
    memory = bench.fake.null if null else bench.fake.ffi.new("uint8_t[64]")
    lib, dev = bench.lib, bench.dev
    assert lib.ferrule_device_copy_to(dev, offset, memory, size_bytes) == status
    assert lib.ferrule_device_copy_from(dev, memory, offset, size_bytes) == status
    assert len(bench.fake.events()) == (2 if status is Status.OK and size_bytes else 0)


@pytest.mark.parametrize("event", [Event.COPY_TO, Event.COPY_FROM])
def test_what_the_driver_says_of_a_copy_is_returned(bench: Bench, event: Event) -> None:
    bench.bring("open")
    bench.fake.fail({event: Status.DEVICE})
    assert bench.call(event.name.lower()) == Status.DEVICE


def test_the_context_is_for_its_own_driver(bench: Bench) -> None:
    bench.bring("open")
    found = bench.fake.ffi.new("void **")
    lib, dev = bench.lib, bench.dev
    assert lib.ferrule_device_context(dev, bench.fake.driver, found) == Status.OK
    assert found[0] == bench.context
    assert lib.ferrule_device_context(dev, bench.fake.bare_driver, found) == Status.ARGUMENT
    assert lib.ferrule_device_context(dev, bench.fake.null, found) == Status.ARGUMENT
    assert lib.ferrule_device_context(dev, bench.fake.driver, bench.fake.null) == Status.ARGUMENT


class WithoutDriver:
    """A device bound before its driver is known, at an address that the platform knows or not."""

    def __init__(self, bench: Bench, address: int) -> None:
        self.bench = bench
        self.base = bench.fake.ffi.new("uintptr_t *")
        self._driver = bench.lib.fake_no_driver()
        bench.bring("initialised")
        where = bench.fake.ffi.cast("void *", address)
        assert bench.lib.ferrule_device_bind_driver(bench.dev, self._driver, where) == Status.OK

    def complete(self, *, driver: object = None, base: bool = True) -> int:
        """Call set_driver with the bench's driver or another one."""
        fake = self.bench.fake
        given = fake.driver if driver is None else driver
        base_of = self.base if base else fake.null
        return int(self.bench.lib.ferrule_device_set_driver(self.bench.dev, given, self.bench.context, base_of))


@pytest.mark.parametrize(
    ("bound", "stated", "found"), [(0x4000, 0x5000, 0x4000), (0x4000, 0, 0x4000), (0, 0x5000, 0x5000)]
)
def test_the_driver_gets_the_address_of_the_bind(bench: Bench, bound: int, stated: int, found: int) -> None:
    device = WithoutDriver(bench, bound)
    device.base[0] = stated
    assert device.complete() == Status.OK
    assert device.base[0] == found
    assert bench.call("activate") == Status.OK
    assert bench.fake.events() == UP
    device.base[0] = 1
    assert device.complete() == Status.OK, "the same driver, again"
    assert device.base[0] == 1


def test_a_driver_without_an_address_is_refused(bench: Bench) -> None:
    device = WithoutDriver(bench, 0)
    assert device.complete() == Status.ARGUMENT
    assert bench.call("activate") == Status.OK
    assert bench.fake.events() == [Event.LOCK, Event.POWER_ON, Event.UNLOCK], "it still has no driver"
    assert bench.call("deactivate") == Status.OK
    assert device.complete(base=False) == Status.OK


def test_no_other_driver_is_replaced(bench: Bench) -> None:
    device = WithoutDriver(bench, 4)
    assert device.complete(driver=bench.fake.null) == Status.ARGUMENT
    assert device.complete(driver=bench.fake.bare_driver, base=False) == Status.OK
    assert device.complete() == Status.ARGUMENT


def test_a_driver_is_set_while_nothing_uses_the_device(bench: Bench) -> None:
    device = WithoutDriver(bench, 4)
    found: list[int] = []
    bench.fake.during(Event.POWER_ON, lambda: found.append(device.complete()))
    assert bench.call("activate") == Status.OK
    assert [*found, device.complete()] == [Status.STATE, Status.STATE]
    assert bench.call("deactivate") == Status.OK
    assert device.complete() == Status.OK


def test_only_a_bound_device_gets_a_driver(bench: Bench) -> None:
    dev, driver, context, null = bench.dev, bench.fake.driver, bench.context, bench.fake.null
    assert bench.lib.ferrule_device_set_driver(null, driver, context, null) == Status.ARGUMENT
    assert bench.lib.ferrule_device_set_driver(dev, driver, context, null) == Status.HANDLE
    bench.bring("initialised")
    assert bench.lib.ferrule_device_set_driver(dev, driver, context, null) == Status.STATE
    with bench.fake.interrupt():
        assert bench.lib.ferrule_device_set_driver(dev, driver, context, null) == Status.INTERRUPT
