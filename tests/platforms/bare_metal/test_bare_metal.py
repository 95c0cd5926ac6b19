# SPDX-License-Identifier: Apache-2.0
"""The bare-metal adapter on the host, with fakes of the machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bare_metal_machine import compiled
from needs import require_sanitizers

from ferrule import resources
from ferrule.link.protocol import Status
from ferrule.testing.adapter import Adapter, build_adapter
from ferrule.testing.fakes import Fakes
from ferrule.testing.sanitizers import run_sanitized

pytestmark = pytest.mark.cc
Machine = Adapter[Fakes]


@pytest.fixture
def machine() -> Iterator[Machine]:
    machine = compiled()
    machine.fakes.reset()
    yield machine
    machine.fakes.check()


def handle(machine: Machine, *, power: Any = None, driver: Any = None) -> Any:  # noqa: ANN401 cffi is not typed
    """Return a bound handle."""
    null = machine.ffi.NULL
    dev = machine.ffi.new("struct ferrule_device *")
    assert machine.lib.ferrule_device_init(dev) == Status.OK
    bound = machine.lib.ferrule_device_bind(dev, null, power or null, driver or machine.driver(), null)
    assert bound == Status.OK
    return dev


Hook = Callable[[Any], int] | None


def hooks(machine: Machine, on: Hook, off: Hook, cut: Hook = None) -> Any:  # noqa: ANN401 cffi is not typed
    power = machine.ffi.new("struct ferrule_bare_metal_power *")
    power.context = machine.ffi.cast("void *", 0x5000)
    for name, hook in (("on", on), ("off", off), ("cut", cut)):
        if hook is not None:
            setattr(power, name, machine.callback("int32_t (void *)", hook))
    return power


def test_one_thread_needs_no_priority(machine: Machine) -> None:
    machine.lib.ferrule_platform_yield()
    assert machine.lib.ferrule_platform_priority() == 0


def test_it_is_ready_from_init_to_destroy(machine: Machine) -> None:
    dev, lib = handle(machine), machine.lib
    calls = (lib.ferrule_device_activate, lib.ferrule_device_open, lib.ferrule_device_close)
    assert [call(dev) for call in (*calls, lib.ferrule_device_deactivate)] == [Status.OK] * 4
    assert lib.ferrule_device_destroy(dev) == Status.OK


def test_init_copes_with_any_storage(machine: Machine) -> None:
    dev = machine.ffi.new("struct ferrule_device *")
    machine.ffi.buffer(dev)[:] = b"\xa5" * machine.ffi.sizeof("struct ferrule_device")
    assert machine.lib.ferrule_device_init(dev) == Status.OK
    assert dev.base == machine.ffi.NULL
    assert dev.power == machine.ffi.NULL


def test_bind_keeps_the_base(machine: Machine) -> None:
    ffi, dev = machine.ffi, machine.ffi.new("struct ferrule_device *")
    base = ffi.cast("void *", 0x40010000)
    driver = machine.driver()
    assert machine.lib.ferrule_device_bind(ffi.NULL, base, ffi.NULL, driver, ffi.NULL) == Status.ARGUMENT
    assert machine.lib.ferrule_device_bind(dev, base, ffi.NULL, driver, ffi.NULL) == Status.HANDLE
    machine.lib.ferrule_device_init(dev)
    assert machine.lib.ferrule_device_bind(dev, base, ffi.NULL, ffi.NULL, ffi.NULL) == Status.ARGUMENT
    assert machine.lib.ferrule_device_bind(dev, base, ffi.NULL, driver, ffi.NULL) == Status.OK
    assert dev.base == base
    assert machine.lib.ferrule_device_bind(dev, ffi.NULL, ffi.NULL, driver, ffi.NULL) == Status.STATE
    assert dev.base == base


def test_power_is_switched_by_the_hooks(machine: Machine) -> None:
    seen: list[tuple[str, int]] = []

    def hook(name: str) -> Callable[[Any], int]:
        def switch(context: object) -> int:
            seen.append((name, int(machine.ffi.cast("uintptr_t", context))))
            return 0

        return switch

    power = hooks(machine, hook("on"), hook("off"))
    dev = handle(machine, power=power)
    machine.lib.ferrule_device_activate(dev)
    machine.lib.ferrule_device_deactivate(dev)
    assert seen == [("on", 0x5000), ("off", 0x5000)]


def test_hooks_may_be_missing(machine: Machine) -> None:
    power = hooks(machine, None, None)
    dev = handle(machine, power=power)
    assert machine.lib.ferrule_device_activate(dev) == Status.OK
    assert machine.lib.ferrule_device_deactivate(dev) == Status.OK


def test_what_a_hook_says_is_returned(machine: Machine) -> None:
    power = hooks(machine, lambda _: Status.UNAVAILABLE, None)
    dev = handle(machine, power=power)
    assert machine.lib.ferrule_device_activate(dev) == Status.UNAVAILABLE
    assert machine.lib.ferrule_device_open(dev) == Status.STATE


def test_a_task_that_takes_its_turn_finds_the_device_busy(machine: Machine) -> None:
    dev, lib = handle(machine), machine.lib
    lib.ferrule_device_activate(dev)
    assert lib.ferrule_device_open(dev) == Status.OK
    with machine.fakes.as_thread(2):
        assert lib.ferrule_device_open(dev) == Status.BUSY
        assert lib.ferrule_device_close(dev) == Status.OWNER
    assert lib.ferrule_device_open(dev) == Status.STATE
    assert lib.ferrule_device_close(dev) == Status.OK
    with machine.fakes.as_thread(2):
        assert lib.ferrule_device_open(dev) == Status.OK


def test_nothing_works_in_an_interrupt(machine: Machine) -> None:
    dev = handle(machine)
    with machine.fakes.interrupt():
        assert machine.lib.ferrule_device_activate(dev) == Status.INTERRUPT


def test_every_way_out_lets_interrupts_in_again(machine: Machine) -> None:
    dev, lib = handle(machine), machine.lib
    with machine.fakes.as_thread(2):
        lib.ferrule_device_activate(dev)
    for name in ("open", "open", "deactivate", "close", "close", "deactivate", "deactivate", "destroy"):
        machine.fakes.forget_calls()
        getattr(lib, f"ferrule_device_{name}")(dev)
        words = machine.fakes.trace.split()
        assert words, name
        assert words == ["mask", "unmask"] * (len(words) // 2), name


@pytest.mark.parametrize("call", ["ferrule_device_open", "ferrule_device_activate"])
def test_an_interrupt_between_two_calls_changes_nothing(machine: Machine, call: str) -> None:
    dev, lib = handle(machine), machine.lib
    lib.ferrule_device_activate(dev)
    results: list[int] = []
    machine.fakes.interrupt_after("ferrule_port_critical_exit", lambda: results.append(lib.ferrule_device_close(dev)))
    assert getattr(lib, call)(dev) == Status.OK
    assert results == [Status.INTERRUPT]


def test_power_is_cut_by_the_hook(machine: Machine) -> None:
    """Without a hook for it, the device cannot be stopped: one that switches it off may do nothing."""
    seen: list[str] = []
    cut = machine.lib.ferrule_platform_cut

    def hook(name: str, status: int) -> Hook:
        def call(context: object) -> int:
            assert context == machine.ffi.cast("void *", 0x5000)
            seen.append(name)
            return status

        return call

    assert cut(handle(machine)) == Status.UNSUPPORTED
    both = hook("on", Status.OK), hook("off", Status.OK)
    assert cut(handle(machine, power=hooks(machine, *both))) == Status.UNSUPPORTED
    for status in (Status.OK, Status.UNAVAILABLE):
        assert cut(handle(machine, power=hooks(machine, *both, hook("cut", status)))) == status
    assert seen == ["cut", "cut"]


@pytest.mark.parametrize(("names", "expected"), [("on off", Status.UNSTOPPABLE), ("on off cut", Status.OK)])
def test_a_device_with_dma_needs_what_stops_it(machine: Machine, names: str, expected: Status) -> None:
    null = machine.ffi.NULL
    power = hooks(machine, *[lambda _: Status.OK for _ in names.split()])
    driver = machine.driver(is_passive=False, abort=lambda _: Status.OK)  # nothing reads whether it has stopped
    dev = machine.ffi.new("struct ferrule_device *")
    assert machine.lib.ferrule_device_init(dev) == Status.OK
    assert machine.lib.ferrule_device_bind(dev, null, power, driver, null) == expected
    driver = machine.driver(is_passive=False, abort=lambda _: Status.OK, is_stopped=lambda _: True)
    again = machine.lib.ferrule_device_bind(dev, null, null, driver, null)
    assert again == (Status.STATE if expected is Status.OK else Status.OK)
    if expected is not Status.OK:
        assert machine.lib.ferrule_platform_cut(dev) == Status.UNSUPPORTED  # nothing is left of the bind that failed


def test_a_wait_sleeps_until_its_interrupt(machine: Machine) -> None:
    """The first interrupt is not the device's."""
    dev, fakes = handle(machine), machine.fakes
    began = fakes.now_us
    fakes.at_ms(3, lambda: None)
    fakes.at_ms(7, lambda: machine.lib.ferrule_platform_notify(dev))
    assert machine.lib.ferrule_platform_wait(dev, 20_000) == Status.OK
    assert 7_000 <= fakes.now_us - began < 7_100
    assert len(fakes.calls_of("ferrule_port_sleep")) == 2


def test_a_wait_ends_at_its_deadline(machine: Machine) -> None:
    dev, now = handle(machine), machine.lib.ferrule_platform_now_us
    began = now()
    assert machine.lib.ferrule_platform_wait(dev, 20_000) == Status.TIMEOUT
    assert 20_000 <= now() - began < 20_100


def test_a_notification_before_the_wait_counts_once(machine: Machine) -> None:
    dev = handle(machine)
    machine.lib.ferrule_platform_notify(dev)
    assert machine.lib.ferrule_platform_wait(dev, 20_000) == Status.OK
    assert machine.lib.ferrule_platform_wait(dev, 20_000) == Status.TIMEOUT


def test_an_interrupt_between_look_and_sleep_is_not_lost(machine: Machine) -> None:
    """It becomes due while interrupts are masked, and comes as soon as the core sleeps."""
    dev, fakes = handle(machine), machine.fakes
    fakes.before("ferrule_port_alarm", lambda: fakes.at_ms(0, lambda: machine.lib.ferrule_platform_notify(dev)))
    began = fakes.now_us
    assert machine.lib.ferrule_platform_wait(dev, 20_000) == Status.OK
    assert fakes.now_us - began < 100


def test_without_a_clock_a_wait_returns_at_once(tmp_path: Path) -> None:
    """The driver then polls, and a time-out is a number of looks."""
    compiled()  # skips without a compiler
    header = '#include "ferrule_fake_port.h"\n#undef FERRULE_PORT_HAS_CLOCK\n'
    (tmp_path / "no_clock.h").write_text(header, encoding="utf-8")
    machine = build_adapter("bare_metal", include_dirs=[tmp_path], defines={"FERRULE_PORT_H": '"no_clock.h"'})
    dev, lib = handle(machine), machine.lib
    first = lib.ferrule_platform_now_us()
    assert lib.ferrule_platform_wait(dev, 20_000) == Status.OK
    assert lib.ferrule_platform_now_us() == first + 1
    assert machine.fakes.calls_of("ferrule_port_sleep") == []


MUTANTS = {
    "no notification": (
        "dev->notified = true;",
        "(void)dev;",
        test_a_wait_sleeps_until_its_interrupt,
    ),
    "no cut": (
        "? power->cut(power->context) :",
        "? (int32_t)(power->cut == NULL) :",
        test_power_is_cut_by_the_hook,
    ),
    "a cut without its function": (
        "dev->core.can_cut = power != NULL && power->cut != NULL;",
        "dev->core.can_cut = power != NULL;",
        lambda machine: test_a_device_with_dma_needs_what_stops_it(machine, "on off", Status.UNSTOPPABLE),
    ),
    "no lock": (
        "bool taken = dev->locked;",
        "bool taken = false;",
        test_a_task_that_takes_its_turn_finds_the_device_busy,
    ),
    "no unlock": (
        "dev->locked = false;\n    return FERRULE_OK;\n}\n\nint32_t ferrule_platform_ready",
        "(void)dev;\n    return FERRULE_OK;\n}\n\nint32_t ferrule_platform_ready",
        test_a_task_that_takes_its_turn_finds_the_device_busy,
    ),
    "power failing": (
        "return hook == NULL ? FERRULE_OK : hook(power->context);",
        "return hook == NULL || hook(power->context) != 1 ? FERRULE_OK : 1;",
        test_what_a_hook_says_is_returned,
    ),
    "interrupts": ("return ferrule_port_in_interrupt();", "return false;", test_nothing_works_in_an_interrupt),
    "masked for ever": (
        "ferrule_port_critical_exit(dev->masked);",
        "(void)dev;",
        test_every_way_out_lets_interrupts_in_again,
    ),
}


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for copies of the adapter, one for all mutants, so that unchanged files are compiled once."""
    return tmp_path_factory.mktemp("mutants")


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name: str, copies: Path) -> None:
    compiled()  # skips without a compiler
    good, bad, check = MUTANTS[name]
    folder = copies / "bare_metal"
    shutil.copytree(resources.root() / "platforms" / "bare_metal", folder, dirs_exist_ok=True)
    source = folder / "src" / "bare_metal.c"
    text = source.read_text(encoding="utf-8")
    assert text.count(good) == 1
    source.write_text(text.replace(good, bad), encoding="utf-8")
    mutant = build_adapter(folder)
    mutant.fakes.reset()
    with pytest.raises(AssertionError):
        check(mutant)


@pytest.mark.nightly
def test_sanitizers_find_nothing() -> None:
    compiled()  # skips without a compiler
    require_sanitizers("address", "undefined")
    run_sanitized([__file__, "-k", "not mutant and not sanitizers"])
