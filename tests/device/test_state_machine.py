# SPDX-License-Identifier: Apache-2.0
"""Any sequence of calls, by two threads and interrupts, with any faults, compared with the model of a handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fake_device import Bench, Event, library
from handle_model import HandleModel
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc

THREADS = st.sampled_from((1, 2))
CALLS = ("init", "bind", "activate", "open", "close", "deactivate", "destroy", "copy_to", "copy_from", "context")
ERRORS = st.sampled_from((Status.FAILED, Status.UNAVAILABLE, Status.DEVICE, Status.MEMORY))
FAULTS = st.dictionaries(st.sampled_from([event for event in Event if event is not Event.GUARD]), ERRORS, max_size=3)
USUALLY_NONE = st.one_of(st.just({}), st.just({}), FAULTS)


class Handles(RuleBasedStateMachine):
    """Makes every kind of call on one handle; the model predicts the result."""

    @initialize(fill=st.binary(min_size=1, max_size=4), depth=st.integers(0, 4))
    def start(self, fill: bytes, depth: int) -> None:
        self.bench = Bench(library())
        self.fake, self.lib = self.bench.fake, self.bench.lib
        self.bench.dev = self.fake.storage(fill)
        self.bench.context.dev = self.bench.dev
        self.model = HandleModel()
        steps = (
            lambda: self.init(1, {}),
            lambda: self.bind(1, bare=False),
            lambda: self.activate(1, {}),
            lambda: self.open(1, {}, Status.TIMEOUT),
        )
        for step in steps[:depth]:
            step()

    def both(
        self, thread: int, faults: dict[Event, Status], expected: Callable[[], Status], call: Callable[[], Any]
    ) -> None:
        self.model.faults = faults
        self.model.events = []
        self.fake.fail(faults)
        with self.fake.thread(thread):
            status = Status(call())
        assert status is expected(), f"{status!r}"
        assert self.fake.events() == self.model.events

    @rule(thread=THREADS, faults=USUALLY_NONE)
    def init(self, thread: int, faults: dict[Event, Status]) -> None:
        dev = self.bench.dev
        self.both(thread, faults, lambda: self.model.init(thread), lambda: self.lib.ferrule_device_init(dev))

    @rule(thread=THREADS, bare=st.booleans())
    def bind(self, thread: int, bare: bool) -> None:
        driver = self.fake.bare_driver if bare else self.fake.driver
        dev, context = self.bench.dev, self.bench.context
        self.both(
            thread, {}, lambda: self.model.bind(thread, bare=bare), lambda: self.lib.fake_bind(dev, driver, context)
        )

    @rule(thread=THREADS, faults=USUALLY_NONE)
    def activate(self, thread: int, faults: dict[Event, Status]) -> None:
        dev = self.bench.dev
        self.both(thread, faults, lambda: self.model.activate(thread), lambda: self.lib.ferrule_device_activate(dev))

    @rule(thread=THREADS, faults=USUALLY_NONE)
    def deactivate(self, thread: int, faults: dict[Event, Status]) -> None:
        dev = self.bench.dev
        self.both(
            thread, faults, lambda: self.model.deactivate(thread), lambda: self.lib.ferrule_device_deactivate(dev)
        )

    @rule(thread=THREADS, faults=USUALLY_NONE, refusal=st.sampled_from((Status.TIMEOUT, Status.BUSY)))
    def open(self, thread: int, faults: dict[Event, Status], refusal: Status) -> None:
        dev, self.fake.state.lock_refusal = self.bench.dev, refusal
        self.both(thread, faults, lambda: self.model.open(thread, refusal), lambda: self.lib.ferrule_device_open(dev))

    @rule(thread=THREADS, faults=USUALLY_NONE)
    def close(self, thread: int, faults: dict[Event, Status]) -> None:
        dev = self.bench.dev
        self.both(thread, faults, lambda: self.model.close(thread), lambda: self.lib.ferrule_device_close(dev))

    @rule(thread=THREADS, faults=USUALLY_NONE)
    def destroy(self, thread: int, faults: dict[Event, Status]) -> None:
        dev = self.bench.dev
        self.both(thread, faults, lambda: self.model.destroy(thread), lambda: self.lib.ferrule_device_destroy(dev))

    @rule(
        thread=THREADS,
        faults=USUALLY_NONE,
        event=st.sampled_from((Event.COPY_TO, Event.COPY_FROM)),
        offset=st.one_of(st.integers(0, 70), st.just(2**32 - 1)),
        size_bytes=st.integers(0, 70),
        null=st.booleans(),
    )
    def copy(
        self, thread: int, faults: dict[Event, Status], event: Event, offset: int, size_bytes: int, null: bool
    ) -> None:
        dev = self.bench.dev
        memory = self.fake.null if null else self.fake.ffi.new("uint8_t[]", 70)
        if event is Event.COPY_TO:
            call = lambda: self.lib.ferrule_device_copy_to(dev, offset, memory, size_bytes)  # noqa: E731
        else:
            call = lambda: self.lib.ferrule_device_copy_from(dev, memory, offset, size_bytes)  # noqa: E731
        self.both(thread, faults, lambda: self.model.copy(thread, event, offset, size_bytes, null=null), call)

    @rule(thread=THREADS, bare=st.booleans(), null=st.booleans())
    def context(self, thread: int, bare: bool, null: bool) -> None:
        driver = self.fake.bare_driver if bare else self.fake.driver
        found = self.fake.null if null else self.fake.ffi.new("void **")
        self.both(
            thread,
            {},
            lambda: self.model.context(thread, bare=bare, null=null),
            lambda: self.lib.ferrule_device_context(self.bench.dev, driver, found),
        )
        if not null and self.model.context(thread, bare=bare, null=null) is Status.OK:
            assert found[0] == self.bench.context

    @rule(name=st.sampled_from(CALLS), thread=THREADS)
    def call_with_null(self, name: str, thread: int) -> None:
        self.both(thread, {}, lambda: Status.ARGUMENT, lambda: self.bench.call(name, self.fake.null))

    @rule(name=st.sampled_from(CALLS), thread=THREADS)
    def call_from_an_interrupt(self, name: str, thread: int) -> None:
        with self.fake.interrupt():
            self.both(thread, {}, lambda: Status.INTERRUPT, lambda: self.bench.call(name))

    @rule(name=st.sampled_from([name for name in CALLS if name != "init"]), thread=THREADS)
    def call_with_a_copy(self, name: str, thread: int) -> None:
        copy = self.fake.copied(self.bench.dev)
        self.both(thread, {}, lambda: Status.HANDLE, lambda: self.bench.call(name, copy))

    @rule()
    def count_to_the_end(self) -> None:
        if self.model.activations:
            self.model.activations = 2**32 - 1
            self.lib.fake_set_activations(self.bench.dev, 2**32 - 1)

    @rule()
    def count_to_the_last(self) -> None:
        if self.model.activations:
            self.model.activations = 1
            self.lib.fake_set_activations(self.bench.dev, 1)

    @invariant()
    def the_handle_is_as_the_model_says(self) -> None:
        if not hasattr(self, "model"):
            return
        self.fake.done()
        if self.model.initialised:
            assert self.lib.fake_activations(self.bench.dev) == self.model.activations
            assert self.lib.fake_opener(self.bench.dev) == self.model.opener
            assert self.lib.fake_users(self.bench.dev) == (1 if self.model.opener else 0)


Handles.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestHandles = Handles.TestCase
