# SPDX-License-Identifier: Apache-2.0
"""Every call in every state returns what the table in docs/platforms.md states, and so does the model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fake_device import Bench, Event, library
from handle_model import HandleModel

from ferrule.link.protocol import Status

DOCUMENT = Path(__file__).parents[2] / "docs" / "platforms.md"
COLUMNS = ("uninitialised", "initialised", "bound", "active", "open", "open by another thread")
CALLS = ("init", "bind", "activate", "open", "close", "deactivate", "destroy", "copy_to", "copy_from", "context")


def table() -> dict[tuple[str, str], Status]:
    """Return the expected status by call and state."""
    heading = f"| call | {' | '.join(COLUMNS)} |\n"
    lines = DOCUMENT.read_text(encoding="utf-8").split(heading)[1].split("\n\n")[0].splitlines()[1:]
    found = {}
    for line in lines:
        call, *cells = re.findall(r"[^|]+", line)
        for column, cell in zip(COLUMNS, cells, strict=True):
            found[call.strip(" `"), column] = Status[cell.strip()]
    return found


TABLE = table()


def test_the_table_is_whole() -> None:
    assert set(TABLE) == {(call, state) for call in CALLS for state in COLUMNS}


@pytest.mark.cc
@pytest.mark.parametrize(("call", "state"), TABLE, ids=lambda each: each.replace(" ", "-"))
def test_the_api_does_what_the_table_says(call: str, state: str) -> None:
    bench = Bench(library())
    bench.bring("foreign" if state == COLUMNS[-1] else state)
    assert Status(bench.call(call)) is TABLE[call, state]
    bench.fake.done()


@pytest.mark.parametrize(("call", "state"), TABLE, ids=lambda each: each.replace(" ", "-"))
def test_the_model_does_what_the_table_says(call: str, state: str) -> None:
    model = HandleModel()
    for step in (model.init, model.bind, model.activate, model.open)[: min(COLUMNS.index(state), 4)]:
        assert step(1) is Status.OK
    thread = 2 if state == COLUMNS[-1] else 1
    if call.startswith("copy"):
        status = model.copy(thread, Event[call.upper()], 0, 4, null=False)
    elif call == "context":
        status = model.context(thread, bare=False, null=False)
    else:
        status = getattr(model, call)(thread)
    assert status is TABLE[call, state]


@pytest.mark.cc
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("state", COLUMNS)
def test_what_comes_before_the_state(call: str, state: str) -> None:
    bench = Bench(library())
    bench.bring("foreign" if state == COLUMNS[-1] else state)
    fake = bench.fake
    assert bench.call(call, fake.null) == Status.ARGUMENT
    with fake.interrupt():
        assert bench.call(call, fake.null) == Status.ARGUMENT
        assert bench.call(call) == Status.INTERRUPT
    if call != "init":
        assert bench.call(call, fake.copied(bench.dev)) == Status.HANDLE
        assert bench.call(call, fake.storage(b"\xa5")) == Status.HANDLE
    assert fake.events() == []
    fake.done()


@pytest.mark.cc
@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\xa5", b"1IDF", b"2BDF"])
def test_init_makes_a_handle_of_any_storage(fill: bytes) -> None:
    bench = Bench(library())
    bench.dev = bench.fake.storage(fill)
    assert bench.call("init") == Status.OK
    assert bench.call("init") == Status.STATE
