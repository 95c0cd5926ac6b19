# SPDX-License-Identifier: Apache-2.0
"""Typical mistakes of adapters, put into this adapter: a test beside this one detects each."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from gate import every
from needs import require_cc, require_module

from ferrule import resources
from ferrule._frozen import frozen
from ferrule.testing.adapter import Adapter, build_adapter
from ferrule.testing.fakes import MisuseError
from ferrule.testing.platforms import CmsisFakes

pytestmark = pytest.mark.cc
FOLDER = Path(__file__).parent
ROOT = resources.root()


@frozen
class Mutant:
    """A change of the adapter, and the test that detects it."""

    file: str
    old: str
    new: str
    test: str
    """A test of test_adapter.py or test_usart.py with a machine as its only argument, or a name from `checks`."""
    kernel: int = 1


MUTANTS = {
    "no lock": Mutant(
        file="cmsis.c",
        old="osMutexAcquire(dev->lock, ticks)",
        new="ticks > 0 && dev->lock != NULL ? osOK : osError",
        test="test_two_threads_take_turns",
    ),
    "no lock without a kernel": Mutant(
        file="cmsis.c",
        old="return taken ? FERRULE_ERR_BUSY : FERRULE_OK;",
        new="(void)taken;\n    return FERRULE_OK;",
        test="test_without_a_kernel_nobody_waits",
        kernel=0,
    ),
    "waiting without end": Mutant(
        file="cmsis.c",
        old="osMutexAcquire(dev->lock, ticks)",
        new="osMutexAcquire(dev->lock, ticks > 0u ? osWaitForever : 0u)",
        test="test_waiting_ends",
    ),
    "a notification that is lost": Mutant(
        file="cmsis.c",
        old="(osEventFlagsSet(dev->notified, NOTIFIED) & osFlagsError) != 0u",
        new="false",
        test="test_a_wait_ends_with_a_notification",
    ),
    "notified once only": Mutant(
        file="cmsis.c",
        old="    dev->is_told = false; /* before",
        new="    /* before",
        test="test_early_notifications_count_once",
    ),
    "each interrupt is a signal": Mutant(
        file="cmsis.c",
        old="dev->is_told = true; /* before",
        new="/* before",
        test="test_a_storm_of_interrupts_is_one_signal",
    ),
    "a handle that a failed signal makes deaf": Mutant(
        file="cmsis.c",
        old="            dev->is_told = false;\n",
        new="",
        test="test_a_signal_that_failed_is_sent_again",
    ),
    "a wait that does not look": Mutant(
        file="cmsis.c",
        old="timeout_us < LOOK_US ? timeout_us : LOOK_US",
        new="timeout_us + 0u * LOOK_US",
        test="test_a_signal_that_failed_and_comes_no_more_is_missed_for_a_bounded_time",
    ),
    "a wait that forgets how long ago the last tick was": Mutant(
        file="cmsis.c",
        old="ferrule_tick_count(limit_us, phase, rate)",
        new="ferrule_tick_count(limit_us, 0u * phase, rate)",
        test="test_a_wait_ends_at_its_deadline",
    ),
    "a wait that is always a tick longer": Mutant(
        file="cmsis.c",
        old="ferrule_tick_count(limit_us, phase, rate)",
        new="ferrule_tick_count(limit_us, phase, rate) + 1u",
        test="test_a_wait_ends_at_its_deadline",
    ),
    "less than a tick is slept": Mutant(
        file="cmsis.c",
        old="if (ferrule_tick_polls(timeout_us, phase, rate)) {",
        new="if (false) {",
        test="test_less_than_a_tick_is_polled",
    ),
    "a poll that keeps others from running": Mutant(
        file="cmsis.c",
        old="        ferrule_platform_yield();\n",
        new="",
        test="test_less_than_a_tick_is_polled",
    ),
    "a timer that is no clock": Mutant(
        file="cmsis.c",
        old="return passed / 2u < period ?",
        new="return period > 0u ?",
        test="test_time_goes_on_at_a_rate_that_the_timer_does_not_divide",
    ),
    "a mutex before the kernel": Mutant(
        file="cmsis.c",
        old="if (dev->is_early || !is_running()) {",
        new="if (false) {",
        test="test_before_the_kernel_runs_there_is_one_thread",
    ),
    "an early lock that nobody keeps": Mutant(
        file="cmsis.c",
        old="if (dev->is_early || !is_running()) {",
        new="if (!is_running()) {",
        test="test_what_is_open_when_the_kernel_starts_stays_open",
    ),
    "time that stands still before the kernel": Mutant(
        file="cmsis.c",
        old="clock.us += is_running() ? 0u : 1u;",
        new="",
        test="test_the_clock_counts_its_readings_before_the_kernel",
    ),
    "a priority upside down": Mutant(
        file="cmsis.c",
        old="is_running() ? (int32_t)osThreadGetPriority(osThreadGetId()) : 0",
        new="is_running() ? -(int32_t)osThreadGetPriority(osThreadGetId()) : 0",
        test="test_the_priority_is_that_of_the_thread",
    ),
    "time that wraps with the ticks": Mutant(
        file="cmsis.c",
        old="    uint32_t now = ferrule_tick_add(&clock, passed, rate);",
        new="    (void)ferrule_tick_add(&clock, passed, rate);\n"
        "    uint32_t now = (uint32_t)((uint64_t)ticks * 1000000u / rate);",
        test="time_goes_on",
    ),
    "a byte that a failed signal hides": Mutant(
        file="cmsis_usart.c",
        old="        usart->told = false; /* the kernel's queue is full: the next byte tries again */\n",
        new="",
        test="test_a_byte_whose_signal_failed_is_followed_by_another_signal",
    ),
    "a mutex that does not inherit": Mutant(
        file="cmsis.c",
        old="osMutexRecursive | osMutexPrioInherit",
        new="osMutexRecursive",
        test="test_the_mutex_is_recursive_and_inherits_priority",
    ),
    "the kernel is unlocked whoever locked it": Mutant(
        file="cmsis.c",
        old="if (dev->guarded)",
        new="if (dev != NULL)",
        test="test_the_kernel_stays_locked_where_it_was",
    ),
    "no interrupt is noticed": Mutant(
        file="cmsis.c",
        old="return ferrule_port_in_interrupt();",
        new="return false;",
        test="test_nothing_is_allowed_in_an_interrupt",
    ),
    "a busy accelerator opens": Mutant(
        file="cmsis.c",
        old="return status.busy != 0u || status.error != 0u ? FERRULE_ERR_UNAVAILABLE : FERRULE_OK;",
        new="(void)status;\n    return FERRULE_OK;",
        test="busy_accelerator",
    ),
    "power that fails stays on": Mutant(
        file="cmsis.c",
        old="(void)power_down(access); /* the first error is returned */",
        new="",
        test="power_fails",
    ),
    "flags that are kept": Mutant(
        file="cmsis.c",
        old="(void)ferrule_cmsis_usart_release(usart); /* the first error is returned */",
        new="",
        test="test_a_bind_that_fails_leaves_nothing_behind",
    ),
    "the order of the RFC": Mutant(
        file="cmsis_usart.c",
        old="status = ferrule_cmsis_driver_status(driver->PowerControl(ARM_POWER_FULL));",
        new="status = FERRULE_OK;",
        test="test_a_strict_driver_is_satisfied",
    ),
    "a receiver that is armed when it is read": Mutant(
        file="cmsis_usart.c",
        old="        (void)rearm(usart); /* if it fails, the reader tries again and gets the error */\n",
        new="",
        test="test_an_answer_that_comes_before_it_is_read",
    ),
    "a time-out keeps the buffer": Mutant(
        file="cmsis_usart.c",
        old="(void)usart->driver->Control(ARM_USART_ABORT_SEND, 0u);",
        new="",
        test="test_a_write_ends_with_its_time_and_lets_go_of_the_buffer",
    ),
    "a full ring is overwritten": Mutant(
        file="cmsis_usart.c",
        old="usart->armed || !has_room(usart)",
        new="usart->armed || (!has_room(usart) && usart == NULL)",
        test="test_a_full_ring_stops_the_receiver",
    ),
    "each byte is a signal": Mutant(
        file="cmsis_usart.c",
        old="usart->told ? 0u : FLAG_RECEIVED",
        new="FLAG_RECEIVED",
        test="test_many_bytes_are_one_signal",
    ),
    "a loss that nobody hears of": Mutant(
        file="cmsis_usart.c",
        old="        usart->lost = true;\n",
        new="",
        test="test_a_loss_ends_a_read_that_waits",
    ),
    "told after looking": Mutant(
        file="cmsis_usart.c",
        old="    usart->told = false; /* before checking: a later byte wakes this thread */\n    if",
        new="    if",
        test="test_the_link_lets_others_run",
    ),
}


def checks() -> dict[str, Callable[[Adapter[CmsisFakes]], None]]:
    """Return the tests beside this one, by name; tests with more arguments are wrapped under other names."""
    adapter, usart = module("test_adapter"), module("test_usart")
    found = {name: each for part in (adapter, usart) for name, each in vars(part).items() if name.startswith("test_")}
    found["busy_accelerator"] = lambda machine: adapter.test_a_busy_or_broken_accelerator_does_not_open(machine, 1)
    found["time_goes_on"] = lambda machine: adapter.test_time_goes_on_when_the_count_of_ticks_wraps(machine, 1024)
    found["power_fails"] = lambda machine: adapter.test_power_that_fails_is_undone(machine, -1)
    return found


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"mutants_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the adapter; the mutants are built there, so that only the changed file is compiled for each."""
    folder = tmp_path_factory.mktemp("mutants")
    for name in ("include", "src_c"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def machine(folder: Path, mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> Adapter[CmsisFakes]:
    """Build the adapter from a copy with the mutant's change."""
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    shutil.copytree(ROOT / "platforms" / "cmsis", folder / "platforms" / "cmsis", dirs_exist_ok=True)
    path = folder / "platforms" / "cmsis" / "src" / mutant.file
    text = path.read_text(encoding="utf-8")
    assert mutant.old in text
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    monkeypatch.setattr(resources, "root", lambda: folder)
    return build_adapter(
        "cmsis",
        sources=[FOLDER / "bench.c"],
        headers=["bench.h", "ferrule/counter.h"],
        include_dirs=[FOLDER],
        defines={"FERRULE_CMSIS_RING_BYTES": 16, "FERRULE_CMSIS_RTOS2": mutant.kernel},
    )


@pytest.mark.parametrize("name", every(3, MUTANTS))
def test_it_is_noticed(name: str, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    mutated = machine(copy, mutant, monkeypatch)

    def check() -> None:
        checks()[mutant.test](mutated)
        mutated.fakes.check()

    with pytest.raises((AssertionError, MisuseError)):
        check()


def test_without_a_change_nothing_is_noticed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = machine(copy, Mutant(file="cmsis.c", old="#include", new="#include", test=""), monkeypatch)
    for name in {mutant.test for mutant in MUTANTS.values() if mutant.kernel}:
        same.fakes.reset()
        checks()[name](same)
