# SPDX-License-Identifier: Apache-2.0
"""Three threads interrupt each other's calls at random, and still the device never belongs to two of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from fake_device import Bench, Event, Fake, library
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.cc

THREADS = (1, 2, 3)
CALLS = ("activate", "activate", "open", "open", "close", "deactivate", "deactivate", "copy_to", "destroy")
UNDER_POWER = (Event.ACTIVATE, Event.DEACTIVATE, Event.READY, Event.CHECK, Event.COPY_TO)
Plan = list[tuple[int, str, int]]
"""Interruptions: a thread, its call, and the number of events to let pass first."""


@dataclass(slots=True)
class Traffic:
    """Threads on one device; at each event of a call, a thread that is not in a call may interrupt."""

    bench: Bench
    plan: Plan
    inside: list[int] = field(default_factory=list)
    powered: int = 0
    calls: int = 0
    left_alone: int = 0

    def call(self, thread: int, name: str) -> None:
        self.inside.append(thread)
        with self.bench.fake.thread(thread):
            self.bench.call(name)
        self.inside.pop()
        self.calls += 1

    def happens(self, event: Event) -> None:
        if event is Event.POWER_ON:
            assert not self.powered
            self.powered = 1
        elif event is Event.POWER_OFF:
            assert self.powered
            self.powered = 0
        elif event in UNDER_POWER:
            assert self.powered
        if self.plan and self.left_alone == self.plan[0][2]:
            self.left_alone = 0
            thread, name, _ = self.plan.pop(0)
            if thread not in self.inside:
                self.call(thread, name)
        else:
            self.left_alone += 1


def steps(size: int) -> st.SearchStrategy[Plan]:
    one = st.tuples(st.sampled_from(THREADS), st.sampled_from(CALLS), st.integers(0, 3))
    return st.lists(one, min_size=1, max_size=size)


def race(fake: Fake, calls: Plan, plan: Plan) -> None:
    """Make the calls one after another, interrupted as planned."""
    bench = Bench(fake)
    bench.bring("bound")
    traffic = Traffic(bench, plan.copy())
    fake.watch(traffic.happens)
    for thread, name, _ in calls:
        traffic.call(thread, name)
    fake.unwatch()
    fake.done()
    if bench.lib.ferrule_device_init(bench.dev) == 0:
        assert not traffic.powered, "it was destroyed"
        return
    opener = bench.lib.fake_opener(bench.dev)
    assert bench.lib.fake_users(bench.dev) == (1 if opener else 0)
    assert traffic.powered == (1 if bench.lib.fake_activations(bench.dev) else 0)
    give_back(bench, opener)


def give_back(bench: Bench, opener: int) -> None:
    """Check that the opener can close the device, all activations can be undone, and the handle can be destroyed."""
    with bench.fake.thread(opener or 1):
        if opener:
            assert bench.call("close") == 0
        for _ in range(bench.lib.fake_activations(bench.dev)):
            assert bench.call("deactivate") == 0
        assert bench.call("destroy") == 0
    bench.fake.done()


@settings(max_examples=200)
@given(calls=steps(12), plan=steps(24))
def test_whatever_comes_between(calls: Plan, plan: Plan) -> None:
    race(library(), calls, plan)


COUNTED_DOWN = """\
    core->activations--; /* first, so that a concurrent activation waits for the lock */
    if (core->activations == 0) {
        ferrule_platform_unguard(dev);
        status = power_down(dev);
        ferrule_platform_guard(dev);
    }
"""
COUNTED_DOWN_LATE = """\
    if (core->activations == 1) {
        ferrule_platform_unguard(dev);
        status = power_down(dev);
        ferrule_platform_guard(dev);
    }
    core->activations--;
"""
MUTANTS = {
    "no second look before power": ("if (core->activations == 0) { /* no other thread", "if (1) { /* no other thread"),
    "no second look before opening": ("if (core->activations == 0) { /* deactivated while", "if (0) { /*"),
    "no second look before counting down": ("if (core->activations == 0) { /* another thread", "if (0) { /*"),
    "counted down too late": (COUNTED_DOWN, COUNTED_DOWN_LATE),
    "no lock": ("status = ferrule_platform_lock(dev, slice);", "status = FERRULE_OK;"),
    "no owner": ("return core->owner == ferrule_platform_thread() ? FERRULE_OK : FERRULE_ERR_OWNER;", "return 0;"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    fake = library(MUTANTS[name])
    choice = random.Random(name)

    def draw(size: int) -> Plan:
        count = choice.randrange(1, size)
        return [(choice.choice(THREADS), choice.choice(CALLS), choice.randrange(4)) for _ in range(count)]

    for _ in range(3000):
        try:
            race(fake, draw(12), draw(24))
        except AssertionError:
            return
    pytest.fail("3000 races did not detect the mutant")
