# SPDX-License-Identifier: Apache-2.0
"""Records, scripts and time of the fakes, on any platform."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import require_cc, require_module

from ferrule.errors import FerruleError
from ferrule.testing import Adapter, Call, CData, MisuseError, ZephyrFakes, build_adapter
from ferrule.testing.calls import trace

pytestmark = pytest.mark.cc


@pytest.fixture(scope="module")
def built() -> Adapter[ZephyrFakes]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter("zephyr")


@pytest.fixture
def zephyr(built: Adapter[ZephyrFakes]) -> Adapter[ZephyrFakes]:
    built.reset()
    return built


def call(name: str, result: int | None = 0, *arguments: int) -> Call:
    return Call(name=name, object=0, arguments=arguments, result=result, thread=1, in_interrupt=False, time_us=0)


def test_a_trace() -> None:
    calls = [call("Initialize"), call("PowerControl", 0, 2), call("Control", -1), call("GetStatus"), call("own")]
    assert trace(calls) == "init on ctl=-1 own"
    assert str(call("Send", None, 70000, 3)) == "       0 us  thread 1  Send(0x11170, 3) -> ..."


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 4) | st.none(), st.integers(-9, -1)), max_size=4),
)
def test_scripts_concern_the_calls_that_they_name(
    built: Adapter[ZephyrFakes], scripts: list[tuple[int, int | None, int]]
) -> None:
    """The rule: the first script that applies to a call decides, and only that script is used up."""
    built.reset()
    for nth, times, result in scripts:
        built.fakes.fail("k_msleep", nth=nth, times=times, result=result)
    left = [[nth - 1, times, result] for nth, times, result in scripts]
    for _ in range(12):
        expected = 0
        decided = False
        for script in left:
            if script[0]:
                script[0] -= 1
            elif script[1] != 0 and not decided:
                decided = True
                expected = script[2]
                script[1] = None if script[1] is None else script[1] - 1
        assert built.lib.k_msleep(1) == expected


def test_time_is_virtual(zephyr: Adapter[ZephyrFakes]) -> None:
    order: list[str] = []
    zephyr.fakes.at_ms(5, lambda: order.append("five"))
    zephyr.fakes.at_ms(2, lambda: order.append("two"))
    zephyr.fakes.at_ms(5, lambda: order.append("five again"))
    zephyr.fakes.advance_ms(3)
    assert order == ["two"]
    zephyr.lib.k_msleep(10)
    assert order == ["two", "five", "five again"]
    assert zephyr.fakes.now_us == pytest.approx(13_000, abs=5)


def test_results_and_errors_of_threads(zephyr: Adapter[ZephyrFakes]) -> None:
    assert zephyr.fakes.run(lambda: 1, lambda: zephyr.lib.k_msleep(5)) == [1, 0]

    def fails() -> None:
        raise ValueError("in a thread")

    with pytest.raises(ValueError, match="in a thread"):
        zephyr.fakes.run(fails, lambda: zephyr.lib.k_msleep(5))


def test_a_thread_that_waits_for_something_else_is_told(zephyr: Adapter[ZephyrFakes]) -> None:
    released = threading.Event()

    def outside() -> None:
        zephyr.lib.k_uptime_get()
        released.wait(30)

    def inside() -> None:
        try:
            zephyr.lib.k_msleep(5)
        finally:
            released.set()

    zephyr.fakes.be_patient(0.3)
    try:
        with pytest.raises(MisuseError, match="no fake: thread 12 waits in k_msleep"):
            zephyr.fakes.run(outside, inside)
    finally:
        zephyr.fakes.be_patient(20)


def test_a_thread_of_the_test_s_own_takes_part(zephyr: Adapter[ZephyrFakes]) -> None:
    """Time continues after the thread has ended."""
    thread = threading.Thread(target=zephyr.lib.k_uptime_get)
    thread.start()
    thread.join()
    assert zephyr.lib.k_msleep(5) == 0


def test_hooks_may_call(zephyr: Adapter[ZephyrFakes]) -> None:
    zephyr.fakes.before("k_msleep", lambda: zephyr.fakes.note("before"), nth=2)
    zephyr.fakes.after("k_msleep", zephyr.lib.k_yield)
    zephyr.lib.k_msleep(1)
    zephyr.lib.k_msleep(1)
    assert zephyr.fakes.trace == "sleep yield before sleep"


def test_callbacks(zephyr: Adapter[ZephyrFakes]) -> None:
    def wrong(_: CData) -> int:
        raise ValueError("in a callback")

    function = zephyr.callback("int32_t (void *)", wrong)
    with pytest.raises(ValueError, match="in a callback"):
        zephyr.call(function, zephyr.ffi.NULL)


def test_names_that_c_does_not_have(zephyr: Adapter[ZephyrFakes]) -> None:
    with pytest.raises(AttributeError, match="k_mutex_destroy"):
        zephyr.lib.k_mutex_destroy()


def test_two_of_the_same_know_nothing_of_each_other(zephyr: Adapter[ZephyrFakes]) -> None:
    other = build_adapter("zephyr")
    noted: list[str] = []
    zephyr.fakes.before("k_msleep", lambda: noted.append("mine"))
    other.fakes.before("k_msleep", lambda: noted.append("other"))
    zephyr.lib.k_msleep(1)
    other.lib.k_msleep(1)
    assert noted == ["mine", "other"]
    assert len(zephyr.fakes.calls) == len(other.fakes.calls) == 1


def test_too_many_devices(zephyr: Adapter[ZephyrFakes]) -> None:
    for number in range(8):
        zephyr.fakes.device(f"npu{number}")
    with pytest.raises(FerruleError, match="room for 8 devices"):
        zephyr.fakes.device("npu8")


def test_a_wire_to_zephyrs_uart(zephyr: Adapter[ZephyrFakes]) -> None:
    wire = zephyr.fakes.uart("uart0")
    device = zephyr.fakes.device("uart0")
    wire.answer_with(lambda data: data.upper(), after_ms=1)
    for byte in b"hi":
        zephyr.lib.uart_poll_out(device, byte)
    assert wire.received == b"hi"
    came = zephyr.new("unsigned char *")
    assert zephyr.lib.uart_poll_in(device, came) == -1
    zephyr.lib.k_msleep(2)
    assert (zephyr.lib.uart_poll_in(device, came), came[0]) == (0, ord("H"))
    with pytest.raises(MisuseError, match="outside of the interrupt"):
        zephyr.lib.uart_fifo_read(device, zephyr.new("uint8_t *"), 1)
    zephyr.fakes.uart_errors("uart0", 2)
    assert [zephyr.lib.uart_err_check(device) for _ in range(2)] == [2, 0]


def test_a_handler_that_ignores_its_interrupt(zephyr: Adapter[ZephyrFakes]) -> None:
    wire = zephyr.fakes.uart("uart0")
    device = zephyr.fakes.device("uart0")
    handler = zephyr.callback("void (const struct device *, void *)", lambda *_: None)
    zephyr.lib.uart_irq_callback_user_data_set(device, handler, zephyr.ffi.NULL)
    zephyr.lib.uart_irq_rx_enable(device)
    with pytest.raises(MisuseError, match="uart0 neither serves nor disables"):
        wire.send(b"x")
