# SPDX-License-Identifier: Apache-2.0
"""The Zephyr adapter on the host: its contract, every call that can fail, and mutants."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from gate import every
from needs import require_module
from zephyr_bench import (
    ARGUMENT,
    BUSY,
    HANDLE,
    LIFE,
    MEMORY,
    OK,
    PROMISES,
    STATE,
    STATUS_OF,
    TIMEOUT,
    UNSTOPPABLE,
    UNSUPPORTED,
    Bench,
    built,
)

from ferrule import resources
from ferrule.testing import Adapter, MisuseError, ZephyrFakes, build_adapter

pytestmark = pytest.mark.cc


@pytest.fixture(scope="module")
def adapter() -> Adapter[ZephyrFakes]:
    return built()


@pytest.fixture
def bench(adapter: Adapter[ZephyrFakes]) -> Bench:
    return Bench.of(adapter)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_it_keeps_its_promises(bench: Bench, promise: Callable[[Bench], None]) -> None:
    promise(bench)


def test_bind_says_what_is_wrong(bench: Bench) -> None:
    lib, null = bench.adapter.lib, bench.adapter.ffi.NULL
    assert bench.bind() == bench.bind_soft() == HANDLE
    assert bench.call("init") == OK
    assert lib.ferrule_device_bind(null, bench.npu, bench.driver, null) == ARGUMENT
    assert lib.ferrule_device_bind_soft(null, bench.driver, null) == ARGUMENT
    assert lib.ferrule_device_bind(bench.handle, null, bench.driver, null) == ARGUMENT
    assert lib.ferrule_device_bind(bench.handle, bench.npu, null, null) == ARGUMENT
    assert lib.ferrule_device_bind_soft(bench.handle, null, null) == ARGUMENT
    assert bench.bind() == OK
    assert bench.bind() == bench.bind_soft() == STATE


def test_a_soft_device_needs_nothing_of_zephyr(bench: Bench) -> None:
    bench.fakes.not_ready("npu")
    assert bench.call("init") == OK
    assert bench.bind_soft() == OK
    assert bench.traced("activate") == (OK, "lock unlock")
    assert bench.traced("open") == (OK, "lock")
    assert bench.traced("close") == (OK, "unlock")
    assert bench.traced("deactivate") == (OK, "lock unlock")
    assert bench.call("destroy") == OK


def test_a_device_with_dma_needs_what_stops_it(bench: Bench) -> None:
    """A power domain, or a driver that reads whether its device has stopped."""
    bench.driver = bench.adapter.driver(is_passive=False, abort=lambda _: OK)
    assert bench.call("init") == OK
    bench.fakes.fail("pm_device_on_power_domain", result=0)
    assert bench.bind() == bench.bind_soft() == UNSTOPPABLE
    assert bench.bind() == OK
    assert bench.call("destroy") == OK
    bench.driver = bench.adapter.driver(is_passive=False, abort=lambda _: OK, is_stopped=lambda _: True)
    assert bench.call("init") == OK
    assert bench.bind_soft() == OK


def test_a_soft_device_cannot_be_cut(bench: Bench) -> None:
    assert bench.call("init") == OK
    assert bench.bind_soft() == OK
    assert bench.adapter.lib.ferrule_platform_cut(bench.handle) == UNSUPPORTED


def test_a_device_that_was_cut_is_off_once(bench: Bench) -> None:
    """Its deactivation changes nothing, and the next activation resumes it."""
    bench.driver = bench.adapter.driver(is_passive=False)
    bench.active()
    assert bench.call("open") == OK
    assert bench.call("abort") == OK
    assert bench.call("close") == OK
    assert bench.fakes.power_count("npu") == 0
    assert bench.traced("deactivate") == (OK, "lock unlock")
    assert bench.call("activate") == OK
    assert bench.fakes.power_count("npu") == 1


def test_a_soft_device_has_nothing_of_a_bind_that_failed(bench: Bench) -> None:
    null = bench.adapter.ffi.NULL
    assert bench.call("init") == OK
    assert bench.adapter.lib.ferrule_device_bind(bench.handle, bench.npu, null, null) == ARGUMENT
    assert bench.bind_soft() == OK
    assert bench.traced("activate") == (OK, "lock unlock")


def test_powers_once_for_many_activations(bench: Bench) -> None:
    bench.active()
    assert bench.traced("activate") == (OK, "")
    assert bench.fakes.power_count("npu") == 1
    assert bench.traced("deactivate") == (OK, "")
    assert bench.call("deactivate") == OK
    assert bench.fakes.power_count("npu") == 0


def test_does_not_wait_where_the_time_is_zero() -> None:
    bench = Bench.of(built("CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS=0")).active()
    assert bench.call("open") == OK
    with bench.fakes.as_thread(2):
        before = bench.fakes.now_us
        assert bench.call("open") == BUSY
        assert bench.fakes.now_us - before < 100


def test_a_slow_clock_measures_ticks(bench: Bench) -> None:
    """Cycles of 30 microseconds and ticks of a hundred: a wait ends no earlier, and at most two ticks later."""
    bench.bound()
    bench.fakes.set_tick(100, cycles_hz=32_768)
    lib, fakes = bench.adapter.lib, bench.fakes
    for limit_us in (100, 101, 350):
        lib.ferrule_fake_advance(37)
        began, clock = fakes.now_us, lib.ferrule_platform_now_us()
        assert lib.ferrule_platform_wait(bench.handle, limit_us) == TIMEOUT
        assert limit_us <= fakes.now_us - began < limit_us + 220
        assert (lib.ferrule_platform_now_us() - clock) % 100 == 0
    assert lib.ferrule_platform_lock(bench.handle, 0) == OK
    with fakes.as_thread(2):
        began = fakes.now_us
        assert lib.ferrule_platform_lock(bench.handle, 250) == TIMEOUT
        assert 250 <= fakes.now_us - began < 470


def test_init_fails_where_the_kernel_has_no_mutex(bench: Bench) -> None:
    bench.fakes.fail("k_mutex_init", result=-errno.ENOMEM)
    assert bench.call("init") == MEMORY
    assert bench.bind() == HANDLE
    assert bench.call("init") == OK


FAILING = {
    "k_mutex_init": errno.ENOMEM,
    "k_mutex_lock": errno.EBUSY,
    "k_mutex_unlock": errno.EPERM,
    "pm_device_runtime_get": errno.EIO,
    "pm_device_runtime_put": errno.ENOSYS,
}


def calls_in_a_life(bench: Bench) -> list[tuple[str, int]]:
    """Return each call that can fail in a device's life, with its number among calls of that name."""
    for name in LIFE:
        assert (bench.bind() if name == "bind" else bench.call(name)) == OK
    made = [call.name for call in bench.fakes.calls if call.name in FAILING]
    return [(name, made[:index].count(name) + 1) for index, name in enumerate(made)]


def test_every_failing_call_is_told_and_leaves_a_device_that_works(adapter: Adapter[ZephyrFakes]) -> None:
    failures = calls_in_a_life(Bench.of(adapter))
    assert [name for name, _ in failures] == [
        "k_mutex_init",
        *("k_mutex_lock", "pm_device_runtime_get", "k_mutex_unlock"),
        *("k_mutex_lock", "k_mutex_unlock"),
        *("k_mutex_lock", "pm_device_runtime_put", "k_mutex_unlock"),
    ]
    for name, nth in failures:
        bench = Bench.of(adapter)
        bench.fakes.fail(name, nth=nth, result=-FAILING[name])
        results = []
        for step in LIFE:
            status = bench.bind() if step == "bind" else bench.call(step)
            if status == STATUS_OF[FAILING[name]]:
                results.append(step)
                break
            assert status == OK, (name, nth, step)
        assert len(results) == 1, (name, nth)
        failed = results[0]
        if name == "k_mutex_unlock":  # really fails only for a thread without the lock; the fake keeps it
            continue
        if failed in {"init", "activate", "open"}:  # the state is as before, so this step and all later ones work
            rest = LIFE[LIFE.index(failed) :]
        else:
            rest = LIFE[LIFE.index(failed) + 1 :] if name == "pm_device_runtime_put" else LIFE[LIFE.index(failed) :]
        assert [bench.bind() if step == "bind" else bench.call(step) for step in rest] == [OK] * len(rest), (name, nth)


def test_a_handle_destroyed_while_another_thread_waits_hangs_nobody(bench: Bench) -> None:
    bench.active()
    assert bench.call("open") == OK
    assert bench.call("destroy") == BUSY
    assert bench.call("close") == OK
    assert bench.call("destroy") == BUSY
    assert bench.call("deactivate") == OK
    assert bench.call("destroy") == OK
    assert bench.call("open") == HANDLE


WAIT = "timeout_of(timeout_us - passed)"
UNLOCK = ("const int error = k_mutex_unlock(&dev->lock);", "const int error = dev == NULL;")
MUTANTS = {
    "no lock": (
        ("k_mutex_lock(&dev->lock, timeout)", "dev == NULL || timeout.ticks == -9"),
        UNLOCK,
    ),
    "waits for ever": ((WAIT, "K_FOREVER"),),
    "never waits": ((WAIT, "K_NO_WAIT"),),
    "a wait for the lock that ends early": (("} while (passed < timeout_us);", "} while (timeout_us > UINT32_MAX);"),),
    "a wait for the next tick that takes another": (("#if defined(CONFIG_TIMEOUT_64BIT)", "#if 0"),),
    "goes on with an inherited priority": (
        ("(k_current_get()) != priority", "(k_current_get()) != priority && dev == NULL"),
    ),
    "cycles that wrap unseen": (("(wraps << 32) + rest", "wraps * 0u + rest"),),
    "a clock of ticks": (("return (uint32_t)sys_clock_hw_cycles_per_sec() >= USEC_PER_SEC;", "return false;"),),
    "keeps the lock": (UNLOCK,),
    "PM get fails unseen": (
        ("on ? pm_device_runtime_get(dev->zephyr_device)", "on ? (pm_device_runtime_get(dev->zephyr_device), 0)"),
    ),
    "PM put fails unseen": (
        (": pm_device_runtime_put(dev->zephyr_device)", ": (pm_device_runtime_put(dev->zephyr_device), 0)"),
    ),
    "no PM put": ((": pm_device_runtime_put(dev->zephyr_device)", ": 0"),),
    "binds what is not ready": (("if (!device_is_ready(zephyr_device)) {", "if (false) {"),),
    "opens what is not ready": (("dev->zephyr_device != NULL && !device_is_ready(dev->zephyr_device)", "dev == NULL"),),
    "works in interrupts": (("return k_is_in_isr();", "return false;"),),
    "one thread": (("return k_current_get();", 'return "everybody";'),),
    "no guard": (("= k_spin_lock(&dev->guard);", "= {0};"),),
    "guard is kept": (("    ferrule_platform_unguard(dev);\n    return FERRULE_OK;", "    return FERRULE_OK;"),),
    "a notification is lost": (("k_sem_give(&dev->notified);", "(void)dev;"),),
    "notifications are counted": (("k_sem_init(&dev->notified, 0u, 1u)", "k_sem_init(&dev->notified, 0u, 9u)"),),
    "a wait without end": (("&dev->notified, timeout_of(timeout_us)", "&dev->notified, K_FOREVER"),),
    "a wait that is too short": (
        ("&dev->notified, timeout_of(timeout_us)", "&dev->notified, timeout_of(timeout_us - 500u)"),
    ),
    "suspended is off": (("&state) == 0 && state == PM_DEVICE_STATE_OFF", "&state) == 0 && dev != NULL"),),
    "error of the mutex": (("FERRULE_ERR_TIMEOUT}, /* from a mutex", "FERRULE_ERR_BUSY}, /* from a mutex"),),
    "an unknown error is none": (("return FERRULE_ERR_FAILED;\n}", "return FERRULE_OK;\n}"),),
}


def keep_all(adapter: Adapter[ZephyrFakes]) -> None:
    for promise in PROMISES:
        promise(Bench.of(adapter))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the repository, shared by all mutants, so that unchanged files are compiled once."""
    require_module("cffi", "pip install 'ferrule[run]'")
    root, folder = resources.root(), tmp_path_factory.mktemp("mutants")
    for name in ("include", "src_c"):
        (folder / name).symlink_to(root / name)
    shutil.copytree(root / "platforms" / "zephyr", folder / "platforms" / "zephyr")
    return folder


@pytest.mark.parametrize("name", every(3, MUTANTS))
def test_a_mutant_is_found(name: str, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = resources.root() / "platforms" / "zephyr" / "src"
    shutil.copytree(source, copy / "platforms" / "zephyr" / "src", dirs_exist_ok=True)
    for good, bad in MUTANTS[name]:
        mutate(copy / "platforms" / "zephyr" / "src", good, bad)
    monkeypatch.setattr(resources, "root", lambda: copy)
    mutant = build_adapter("zephyr")
    with pytest.raises((AssertionError, MisuseError, KeyError)):
        keep_all(mutant)


def mutate(folder: Path, good: str, bad: str) -> None:
    """Replace a passage of C that occurs once, regardless of its line breaks."""
    pattern = re.compile(r"\s+".join(map(re.escape, good.split())))
    changed = 0
    for source in folder.glob("*.c"):
        text, count = pattern.subn(lambda _: bad, source.read_text())
        source.write_text(text)
        changed += count
    assert changed == 1, f"the source has changed, so the mutant must be adapted: {good}"
