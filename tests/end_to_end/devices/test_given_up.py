# SPDX-License-Identifier: Apache-2.0
"""Devices that are given up at any moment of their work, behind drivers of templates, pages and Woofles on the host.

Each wait fails in each way, and devices stop at once, later, never, or say so without doing it. After the error nothing
writes to memory, or the handle is lost and says so, or the device is named; and the next run works or is refused.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from campaign import all_faults, chosen
from covering import EXHAUSTIVE
from disobedient import Manner
from gate import some_of
from given_up import DEFAULT, IMPATIENT, IN_FLIGHT, NAMES, POLLED_ONLY, STOP_US, GivenUp, Style, styles
from needs import require_cc, require_module

from ferrule.devices import BusError, Fault, NeverDone
from ferrule.devices.contract import Breach, ContractError
from ferrule.link.protocol import Status
from ferrule.testing import Adapter, build_adapter

pytestmark = pytest.mark.cc

Make = Callable[..., GivenUp]
"""Makes a bound device from its style and its manner, and whether its driver uses the interrupt."""
WAITS = ("time-out", "deadline", "cancelled")
HOWS = (*WAITS, "closed")
"""How a command is given up; a driver with commands in flight may be closed with work left."""
SAMPLED = 12


Row = tuple[str, bool, str]


def rows(*hows: str, kept: Collection[Row]) -> pytest.MarkDecorator:
    """Return a parametrize mark: each driver, polled or by interrupt, given up in these ways; the gate runs `kept`."""
    every = [
        (style, interrupt, how)
        for style in NAMES
        for interrupt in (False, True)
        for how in hows
        if not (interrupt and style in POLLED_ONLY) and (how != "closed" or style in IN_FLIGHT)
    ]
    return pytest.mark.parametrize(("style", "interrupt", "how"), some_of(every, kept))


@pytest.fixture(scope="module")
def all_styles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Style]]:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    with styles(tmp_path_factory.mktemp("given_up")) as found:
        yield found


def built(style: Style, platform: Any = "bare_metal") -> Adapter[Any]:  # noqa: ANN401 a literal of build_adapter
    return build_adapter(platform, **style.driver, defines={"FERRULE_DEVICE_STOP_US": STOP_US})


@pytest.fixture(scope="module")
def make(all_styles: Mapping[str, Style]) -> Make:
    adapters: dict[str, Adapter[Any]] = {}

    def device(name: str, manner: Manner, *, interrupt: bool, stops_after_us: int = 0) -> GivenUp:
        style = all_styles[name]
        if name not in adapters:
            adapters[name] = built(style)
        made = style.make(adapters[name], manner, interrupt=interrupt, stops_after_us=stops_after_us)
        made.work_us = style.work_us
        assert made.activate() == Status.OK
        return made

    return device


def works(device: GivenUp) -> bool:
    """Return whether the device, which is active, does its work."""
    statuses = device.open(), device.execute(), device.close()
    return statuses == (Status.OK,) * 3


def give_up(device: GivenUp, how: str, at_us: int) -> Status:
    """Run the command of the active device, and give it up after some time; return the first error."""
    adapter, lib = device.adapter, device.lib
    stop = adapter.new("struct ferrule_stop *")
    adapter.keep(stop)
    if how == "deadline":
        stop.has_deadline, stop.deadline_us = True, lib.ferrule_platform_now_us() + at_us
    if how == "cancelled":
        adapter.fakes.at_ms(at_us / 1000, lambda: lib.ferrule_stop_request(stop))
    status = device.open_with(stop)
    if status != Status.OK:
        return Status(status)
    if how == "closed":
        status = device.start()
        adapter.fakes.advance_ms(at_us / 1000)
    else:
        status = device.execute(at_us if how == "time-out" else DEFAULT)
    closed = device.close()
    return Status(status or closed)


EXPECTED = {"time-out": Status.TIMEOUT, "deadline": Status.TIMEOUT, "cancelled": Status.CANCELLED, "closed": Status.OK}


def moments(last_us: int) -> list[int]:
    """Return times in microseconds, from the begin of a command on: a few, or all with FERRULE_EXHAUSTIVE=1."""
    if EXHAUSTIVE:
        return [*range(1, 120), *range(120, last_us, 60)]
    return [1, 7, 30, 110, last_us // 3, last_us - 1]


def left_alone(device: GivenUp) -> bool:
    """Return whether the device writes nothing any more; ContractError if it tries to."""
    return not device.writes_within_us(device.work_us * 4)


def check_lost(device: GivenUp) -> None:
    """Check that a device that works on stays lost, whatever is done but waiting for its end; then it is found."""
    refused = [device.recover(), device.deactivate(), device.activate(), device.recover()]
    assert refused == [Status.DEVICE] * 4
    assert device.is_lost
    assert device.lib.ferrule_device_destroy(device.handle) == Status.DEVICE
    assert not left_alone(device)
    assert device.recover() == Status.OK
    assert not device.is_lost
    assert device.activate() == Status.OK


@rows(*HOWS, kept=[("npu", True, "time-out"), ("accelerator", True, "cancelled"), ("tern", False, "deadline")])
def test_a_device_that_is_given_up_never_writes_again(make: Make, style: str, interrupt: bool, how: str) -> None:
    device = make(style, Manner.SOUND, interrupt=interrupt)
    for at_us in moments(device.work_us * 3 // 4):
        assert give_up(device, how, at_us) is EXPECTED[how], at_us
        assert not device.is_lost
        assert left_alone(device), at_us
    assert works(device)
    assert device.deactivate() == Status.OK


@rows(*HOWS, kept=[("npu", True, "deadline"), ("yap", True, "time-out"), ("woofles", False, "closed")])
def test_a_device_that_ignores_its_stop_is_lost(make: Make, style: str, interrupt: bool, how: str) -> None:
    ends = Counter[bool]()
    for at_us in moments(200):
        device = make(style, Manner.DEAF, interrupt=interrupt)
        status = give_up(device, how, at_us)
        ends[device.is_lost] += 1
        if device.is_lost:
            assert status is Status.DEVICE
            check_lost(device)
        else:  # it had not begun
            assert left_alone(device), at_us
        assert works(device)
        assert device.deactivate() == Status.OK
    assert ends[True]


@rows(*HOWS, kept=[("npu", True, "closed"), ("tern", False, "cancelled"), ("woofles", True, "time-out")])
def test_a_stop_may_take_time(make: Make, style: str, interrupt: bool, how: str) -> None:
    """The device says a little after its abort that it has stopped, or too late: then it is lost until it has."""
    for at_us in moments(300):
        device = make(style, Manner.SLOW, interrupt=interrupt, stops_after_us=STOP_US // 2)
        status = give_up(device, how, at_us)
        if not device.is_lost:
            assert status is EXPECTED[how], at_us
            assert left_alone(device), at_us
        else:
            assert (style in IMPATIENT, status) == (True, Status.DEVICE), at_us
            device.adapter.fakes.advance_ms(STOP_US / 1000)
        assert works(device)
    device = make(style, Manner.SLOW, interrupt=interrupt, stops_after_us=device.work_us // 2)
    assert give_up(device, how, 150) is Status.DEVICE
    assert device.is_lost
    assert device.recover() == Status.DEVICE
    device.writes_within_us(device.work_us)
    assert device.recover() == Status.OK
    assert left_alone(device)
    assert works(device)


@rows(*HOWS, kept=[("npu", True, "cancelled"), ("accelerator", True, "deadline"), ("woofles", True, "closed")])
def test_a_device_that_says_that_it_has_stopped_and_goes_on_is_named(
    make: Make, style: str, interrupt: bool, how: str
) -> None:
    """Nothing on a board could tell; the kit does, when the device accesses memory after its abort."""
    ends = Counter[str]()
    for at_us in moments(300):
        device = make(style, Manner.LYING, interrupt=interrupt)
        assert give_up(device, how, at_us) is EXPECTED[how], at_us
        assert not device.is_lost
        try:
            assert left_alone(device), at_us
            ends["had not begun"] += 1
        except ContractError as error:
            check_named(error, "was aborted")
            ends["named"] += 1
    assert ends["named"] >= len(moments(300)) // 2, ends


@rows("", *HOWS, kept=[("npu", True, ""), ("accelerator", True, ""), ("tern", False, "time-out")])
def test_transfers_that_come_late_are_named(make: Make, style: str, interrupt: bool, how: str) -> None:
    """Also after a command that has succeeded."""
    device = make(style, Manner.POSTING, interrupt=interrupt)
    if how:  # nothing is on its way yet
        for at_us in moments(device.work_us // 4):
            assert give_up(device, how, at_us) is EXPECTED[how], at_us
            assert left_alone(device), at_us
    with pytest.raises(ContractError) as caught:
        assert works_to_the_end(device)
    check_named(caught.value, "")


def works_to_the_end(device: GivenUp) -> bool:
    """Return whether the device does its work, and nothing afterwards."""
    return works(device) and left_alone(device)


def check_named(error: ContractError, how: str) -> None:
    """Check that a device is named with its command, and why it may not access memory."""
    assert error.device.endswith("0x40100000")
    assert error.command.startswith("command ")
    assert error.breach is Breach.LATE or (not how and error.breach is Breach.UNWRITTEN)
    assert how in str(error)


@pytest.mark.timeout(7200)  # with FERRULE_EXHAUSTIVE=1, a polled device has hundreds of accesses, each with its wait
@rows("time-out", kept=[("accelerator", True, "time-out"), ("woofles", True, "time-out")])
def test_a_device_that_hangs_is_lost_or_has_stopped(make: Make, style: str, interrupt: bool, how: str) -> None:
    """From each access to its registers on; once it lives again, it would go on with what it has begun."""
    device = make(style, Manner.SOUND, interrupt=interrupt)
    device.injector.inject(None)
    assert works(device)
    count = len(device.injector.accesses)
    ends = Counter[tuple[bool, bool]]()
    few = sorted({*range(0, min(count, 45), 6), count // 2, count - 1})
    for since in range(count) if EXHAUSTIVE else few:
        device = make(style, Manner.SOUND, interrupt=interrupt)
        device.injector.inject(NeverDone(since=since))
        status = give_up(device, how, 2 * device.work_us)
        ends[status is Status.OK, device.is_lost] += 1
        if device.is_lost:
            refused = device.recover(), device.deactivate(), device.activate()
            assert refused == (Status.DEVICE,) * 3, since
            assert device.is_lost
            device.injector.inject(None)
            assert device.activate() == Status.OK, since
            assert not device.is_lost
        device.injector.inject(None)
        assert left_alone(device), since
        assert device.masked or works(device), since
    assert interrupt or ends[False, True]  # by interrupt, some devices are not looked at once they work


@rows("time-out", kept=[("accelerator", True, "time-out"), ("woofles", True, "time-out")])
def test_each_fault_leaves_memory_alone(make: Make, style: str, interrupt: bool, how: str) -> None:
    """After an error, whichever fault caused it, nothing is written any more, or the handle says that it may be."""
    device = make(style, Manner.SOUND, interrupt=interrupt)
    device.injector.inject(None)
    assert works(device)
    faults = list(all_faults(device.injector))
    ends = Counter[str]()
    for fault in chosen(faults, SAMPLED, seed=len(faults)):
        device = make(style, Manner.SOUND, interrupt=interrupt)
        ends[ended(device, fault, how)] += 1
    assert ends["stopped"], ends


def ended(device: GivenUp, fault: Fault, how: str) -> str:
    """Run the command with a fault, and check what it leaves."""
    device.injector.inject(fault)
    try:
        status = give_up(device, how, 2 * device.work_us)
    except BusError:
        return "the core has faulted"
    except ContractError:
        return "named"
    if status is Status.OK:
        return "over"
    lost = device.is_lost
    device.injector.inject(None)
    if lost:
        assert device.recover() == Status.OK, fault
    assert left_alone(device), fault
    assert device.masked or works(device), fault
    return "lost" if lost else "stopped"


@pytest.mark.parametrize(
    ("platform", "manner"), some_of(product(("zephyr", "cmsis"), (Manner.SOUND, Manner.DEAF)), [("cmsis", Manner.DEAF)])
)
def test_a_kernel_that_cannot_wait(all_styles: Mapping[str, Style], platform: str, manner: Manner) -> None:
    style = all_styles["accelerator"]
    adapter = built(style, platform)
    device = style.make(adapter, manner, interrupt=True)
    device.work_us = style.work_us
    assert device.activate() == Status.OK
    name, result = ("k_sem_take", -errno.EIO) if platform == "zephyr" else ("osEventFlagsWait", 0xFFFF_FFFF)
    adapter.fakes.fail(name, result=result)
    status = give_up(device, "", 0)
    assert status is not Status.OK
    if manner is Manner.DEAF:
        assert status is Status.DEVICE
        check_lost(device)
    assert left_alone(device)
    assert works(device)
    assert device.deactivate() == Status.OK
