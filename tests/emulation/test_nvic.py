# SPDX-License-Identifier: Apache-2.0
"""The C model of exception priorities against a plain model in Python."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import require_module

from ferrule.architectures import CORTEX_M
from ferrule.emulation.unicorn.library import load_hooks

pytestmark = pytest.mark.cc

EXCEPTIONS, NONE, LINES = 512, 0x100, 20
Set = ctypes.c_uint32 * (EXCEPTIONS // 32)


class Nvic(ctypes.Structure):
    """The layout of struct ferrule_nvic."""

    _fields_ = (
        ("enabled", Set),
        ("pending", Set),
        ("active", Set),
        ("high", Set),
        ("priority", ctypes.c_int16 * EXCEPTIONS),
        ("count", ctypes.c_uint32),
        ("priority_mask", ctypes.c_uint32),
        ("group", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class Model:
    """The same state, kept in Python sets."""

    def __init__(self) -> None:
        self.enabled: set[int] = {1, 2, 3, 11, 12, 14, 15}
        self.pending: set[int] = set()
        self.active: set[int] = set()
        self.high: set[int] = set()
        self.priority = dict.fromkeys(range(16 + LINES), 0) | {1: -3, 2: -2, 3: -1}
        self.group = 0

    def grouped(self, number: int) -> int:
        priority = self.priority[number]
        return priority if priority < 0 else priority >> (self.group + 1) << (self.group + 1)

    def next(self) -> int:
        candidates = self.enabled & self.pending
        return min(candidates, key=lambda number: (self.priority[number], number), default=0)

    def active_priority(self) -> int:
        return min((self.grouped(number) for number in self.active), default=NONE)


lines = st.integers(16, 15 + LINES)
steps = st.lists(
    st.tuples(
        st.sampled_from(["enable", "disable", "pend", "clear", "raise", "lower", "activate", "end", "group"]),
        lines,
        st.integers(0, 255),
    ),
    max_size=40,
)


@pytest.fixture(scope="module")
def hooks(host_cc: tuple[str, ...]) -> ctypes.CDLL:
    """The loaded library of hooks."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    return load_hooks(CORTEX_M.model)


def apply(hooks: ctypes.CDLL, nvic: Nvic, model: Model, step: tuple[str, int, int]) -> None:
    """Apply one step to both models."""
    what, number, value = step
    reference = ctypes.byref(nvic)
    if what in {"enable", "disable"}:
        hooks.ferrule_set_put(ctypes.byref(nvic, Nvic.enabled.offset), number, ctypes.c_bool(what == "enable"))
        (model.enabled.add if what == "enable" else model.enabled.discard)(number)
        nvic.priority[number] = model.priority[number] = value
    elif what == "pend":
        hooks.ferrule_set_put(ctypes.byref(nvic, Nvic.pending.offset), number, ctypes.c_bool(True))
        model.pending.add(number)
    elif what == "clear":
        hooks.ferrule_nvic_clear_pending(reference, number)
        if number not in model.high or number in model.active:
            model.pending.discard(number)
    elif what in {"raise", "lower"}:
        hooks.ferrule_nvic_set_level(reference, number, ctypes.c_bool(what == "raise"))
        if what == "raise":
            if number not in model.high:
                model.pending.add(number)
            model.high.add(number)
        else:
            model.high.discard(number)
    elif what == "activate":
        first = model.next()
        if first and model.grouped(first) < model.active_priority():
            hooks.ferrule_nvic_activate(reference, first)
            model.pending.discard(first)
            model.active.add(first)
    elif what == "end" and model.active:
        last = min(model.active, key=lambda each: (model.grouped(each), each))
        hooks.ferrule_nvic_deactivate(reference, last)
        model.active.discard(last)
        if last in model.high:
            model.pending.add(last)
    elif what == "group":
        nvic.group = model.group = value % 8


@given(steps)
def test_priorities_equal_a_plain_model(hooks: ctypes.CDLL, todo: list[tuple[str, int, int]]) -> None:
    nvic, model = Nvic(), Model()
    hooks.ferrule_nvic_reset(ctypes.byref(nvic), LINES, 0xFF)
    for step in todo:
        apply(hooks, nvic, model, step)
        priority = ctypes.c_int32()
        first = model.next()
        assert hooks.ferrule_nvic_next(ctypes.byref(nvic), ctypes.byref(priority)) == first
        assert priority.value == (model.grouped(first) if first else NONE)
        assert hooks.ferrule_nvic_active_priority(ctypes.byref(nvic)) == model.active_priority()
        assert hooks.ferrule_nvic_active_count(ctypes.byref(nvic)) == len(model.active)
