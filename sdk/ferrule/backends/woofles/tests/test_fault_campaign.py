# SPDX-License-Identifier: Apache-2.0
"""Every fault at every register access of every operation, on the host; a sample unless FERRULE_EXHAUSTIVE=1.

A call returns whatever fails. If it returns FERRULE_OK, the output is correct, unless data was changed in transit,
which cannot be detected. Once the fault is gone the device works again, even for a user that keeps it active.
"""

from __future__ import annotations

from typing import Any

import pytest
from campaign import Case, all_faults, chosen
from covering import EXHAUSTIVE, covering
from needs import require_module
from woofles_bench import DRIVER, OK, Job, Prepared, WooflesBench, jobs

from ferrule.devices import BusError, DmaErrorAt, Fault, FlippedData, NeverDone, WrongId
from ferrule.testing import Adapter, build_adapter

pytestmark = pytest.mark.cc

JOBS = jobs()
SAMPLED = 60
MOST_ACCESSES = 3000
"""Limit for a call that waits in vain: one poll per unit of patience, and some more."""


@pytest.fixture(scope="module")
def adapter() -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    return build_adapter("bare_metal", **DRIVER)


def cycle(bench: WooflesBench, job: Prepared) -> int:
    """Activate, run and deactivate, like an executor."""
    status = bench.activate()
    if status != OK:
        return status
    try:
        status = job.run()
    finally:
        down = bench.deactivate()
    return status or down


def struck(bench: WooflesBench, job: Prepared, fault: Fault, *, held: bool) -> int | None:
    """Return the status with a fault, None if the bus refused an access."""
    job.forget()
    bench.inject(fault)
    try:
        return job.run() if held else cycle(bench, job)
    except BusError:
        return None
    finally:
        assert len(bench.injector.accesses) < MOST_ACCESSES


def check(bench: WooflesBench, job: Prepared, fault: Fault, status: int | None) -> None:
    transfers = list(bench.injector.transfers)
    if isinstance(fault, FlippedData):
        changed = transfers[fault.at]
        is_command = not changed.write and changed.size_bytes == 160
        assert not (is_command and status == OK), fault  # a checksum protects commands, but not data
    elif isinstance(fault, DmaErrorAt):
        assert status != OK, fault
    elif status == OK:
        assert job.is_right, fault


def back_to_work(bench: WooflesBench, job: Prepared, fault: Fault, *, held: bool) -> None:
    """Check that the device works again after the fault is removed."""
    bench.inject(None)
    job.forget()
    assert (job.run() if held else cycle(bench, job)) == OK, fault
    assert job.is_right, fault


@covering("name, interrupt, held", tuple(JOBS), (False, True), (False, True), seed=5)
def test_each_fault_at_each_access(adapter: Adapter[Any], name: str, interrupt: bool, held: bool) -> None:
    job: Job = JOBS[name]

    def fresh() -> tuple[WooflesBench, Prepared]:
        adapter.reset()
        bench = WooflesBench(adapter, interrupt=interrupt)
        if held:
            assert bench.activate() == OK
        return bench, bench.prepare(job)

    bench, prepared = fresh()
    assert struck(bench, prepared, Fault(), held=held) == OK
    faults = list(all_faults(bench.injector))
    statuses = set()
    for number, fault in enumerate(chosen(faults, SAMPLED, seed=len(faults))):
        if number % 20 == 0:
            bench, prepared = fresh()  # the kit keeps shared memory
        status = struck(bench, prepared, fault, held=held)
        statuses.add(status)
        check(bench, prepared, fault, status)
        if status is None:
            bench, prepared = fresh()  # the core has faulted
        else:
            back_to_work(bench, prepared, fault, held=held)
    assert {OK, None} < statuses


def test_what_the_campaign_holds(adapter: Adapter[Any]) -> None:
    adapter.reset()
    bench = WooflesBench(adapter)
    assert struck(bench, bench.prepare(JOBS["conv_2d"]), Fault(), held=False) == OK
    faults = list(all_faults(bench.injector))
    reached = len(bench.injector.accesses)
    assert reached > 25
    assert sum(isinstance(case.fault, NeverDone) for case in faults) == reached
    assert len(bench.injector.transfers) == 7  # command, two operands, bias, multipliers, shifts, result
    assert len(faults) > 10 * reached
    if not EXHAUSTIVE:
        few = chosen(faults, 12, seed=1)
        assert len(few) == 12
        assert {type(fault) for fault in few} == {type(case.fault) for case in faults}
    assert Case(fault=WrongId(offset=0), target=0) in faults
