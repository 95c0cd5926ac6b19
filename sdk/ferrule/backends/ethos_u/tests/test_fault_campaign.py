# SPDX-License-Identifier: Apache-2.0
"""Every fault at every register access of a stream, on the host; a sample unless FERRULE_EXHAUSTIVE=1.

A call returns whatever fails. If it returns FERRULE_OK, the output is correct, unless data was changed in transit, or
an address that Arm's driver writes and does not read back. Once the fault is gone the device works again, even for a
user that keeps it active.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from campaign import all_faults, chosen
from covering import EXHAUSTIVE, covering
from ethos_u_bench import ARM_DRIVER, DRIVER, OK, EthosUBench, Prepared, job
from needs import require_cc, require_module

from ferrule.backends.ethos_u.registers import TABLE
from ferrule.devices import BusError, DmaErrorAt, Fault, FlippedData, FlippedValue, NeverDone
from ferrule.testing import Adapter, build_adapter

pytestmark = pytest.mark.cc

SAMPLED = 60
MOST_ACCESSES = 12_000
"""Limit for a call that waits in vain: for each reset, the reads of STATUS, and one poll per unit of patience."""
JOB = job()
PLACES = tuple(
    TABLE.register(name).offset
    for name in ("QBASE", "QSIZE", "QCONFIG", "REGIONCFG", *(f"BASEP{region}" for region in range(3)))
)
"""Registers that say what the NPU reads and writes."""


@pytest.fixture(scope="module")
def adapters() -> Mapping[str, Adapter[Any]]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return {"own": build_adapter("bare_metal", **DRIVER), "arm": build_adapter("bare_metal", **ARM_DRIVER)}


def cycle(bench: EthosUBench, prepared: Prepared) -> int:
    """Activate, run and deactivate, like an executor."""
    status = bench.activate()
    if status != OK:
        return status
    try:
        status = prepared.run()
    finally:
        down = bench.deactivate()
    return status or down


def struck(bench: EthosUBench, prepared: Prepared, fault: Fault, *, held: bool) -> int | None:
    """Return the status with a fault, None if the bus refused an access."""
    prepared.forget()
    bench.inject(fault)
    try:
        return prepared.run() if held else cycle(bench, prepared)
    except BusError:
        return None
    finally:
        assert len(bench.injector.accesses) < MOST_ACCESSES


def is_misled(bench: EthosUBench, driver: str, fault: Fault) -> bool:
    """Return whether a fault made Arm's driver point the NPU at other memory."""
    if driver == "own" or not isinstance(fault, FlippedValue):
        return False
    return any(each.number == fault.at and each.write and each.offset in PLACES for each in bench.injector.accesses)


def check(bench: EthosUBench, prepared: Prepared, driver: str, fault: Fault, status: int | None) -> None:
    if isinstance(fault, DmaErrorAt):
        assert status != OK, fault
    elif status == OK and not isinstance(fault, FlippedData):
        assert prepared.is_right or is_misled(bench, driver, fault), fault


@covering("driver, interrupt, held", ("own", "arm"), (False, True), (False, True), seed=5)
def test_each_fault_at_each_access(
    adapters: Mapping[str, Adapter[Any]], driver: str, interrupt: bool, held: bool
) -> None:
    adapter = adapters[driver]

    def fresh() -> tuple[EthosUBench, Prepared]:
        adapter.reset()
        bench = EthosUBench(adapter, interrupt=interrupt, arm=driver == "arm")
        if held:
            assert bench.activate() == OK
        return bench, bench.prepare(JOB)

    bench, prepared = fresh()
    assert struck(bench, prepared, Fault(), held=held) == OK
    assert prepared.is_right
    faults = list(all_faults(bench.injector))
    statuses = set()
    for number, fault in enumerate(chosen(faults, SAMPLED, seed=len(faults))):
        if number % 20 == 0:
            bench, prepared = fresh()  # the kit keeps shared memory
        status = struck(bench, prepared, fault, held=held)
        statuses.add(status)
        check(bench, prepared, driver, fault, status)
        if status is None or is_misled(bench, driver, fault) or isinstance(fault, FlippedData):
            bench, prepared = fresh()  # the core has faulted, or memory has changed
            continue
        bench.inject(None)
        prepared.forget()
        assert (prepared.run() if held else cycle(bench, prepared)) == OK, fault
        assert prepared.is_right, fault
    assert {OK, None} < statuses


@pytest.mark.parametrize("driver", ["own", "arm"])
def test_what_the_campaign_holds(adapters: Mapping[str, Adapter[Any]], driver: str) -> None:
    adapter = adapters[driver]
    adapter.reset()
    bench = EthosUBench(adapter, arm=driver == "arm")
    assert struck(bench, bench.prepare(JOB), Fault(), held=False) == OK
    faults = list(all_faults(bench.injector))
    reached = len(bench.injector.accesses)
    assert reached > 25
    assert sum(isinstance(case.fault, NeverDone) for case in faults) == reached
    assert {access.offset for access in bench.injector.accesses if access.write} >= set(PLACES) - {PLACES[2]}
    assert len(faults) > 10 * reached
    if not EXHAUSTIVE:
        few = chosen(faults, 12, seed=1)
        assert {type(fault) for fault in few} == {type(case.fault) for case in faults}
