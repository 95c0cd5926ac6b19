# SPDX-License-Identifier: Apache-2.0
"""The list of devices that a run holds, entry by entry, and their release."""

from __future__ import annotations

import itertools
import subprocess
from functools import partial
from typing import Any

import pytest
from fake_device import FOLDER, INCLUDE, WARNINGS, declarations
from needs import require_module

from ferrule import resources
from ferrule.codegen.schedule import Call
from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc
HELD_C = resources.root() / "src_c" / "device" / "held.c"
BENCH = """
struct held_bench {
    uint32_t count; char calls[64]; char failing[2]; int32_t failure; char lost; bool stops;
    uint32_t now_us; uint32_t wait_us; uint32_t limit_us; uint32_t given_us[32]; uint32_t opened;
    uint32_t free_at_us[3]; uint32_t users[3]; uint32_t turns; char turns_of; int32_t places;
};
extern struct held_bench held_bench;
typedef struct ferrule_device ferrule_device_t;
struct ferrule_stop {
    volatile bool requested;
    bool has_deadline;
    uint32_t deadline_us;
    struct ferrule_device *volatile waiting;
};
struct ferrule_run_info {
    uint32_t failed_operator;
    void (*on_operator)(void *context, uint32_t index);
    void *context;
    void (*on_device)(void *context, uint32_t index, uint32_t device, uint32_t call, int32_t status);
    void *device_context;
    int32_t (*stop_at)(void *context, uint32_t index);
    struct ferrule_stop stop;
};
void ferrule_run_cancel(struct ferrule_run_info *info);
"""


@pytest.fixture(scope="module")
def library(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The cffi object, and held.c compiled with devices that record their calls."""
    require_module("cffi", "pip install 'ferrule[run]'")
    from cffi import FFI

    target = tmp_path_factory.mktemp("held") / "held.so"
    flags = ["-std=c11", "-O1", "-g", "-shared", "-fPIC", *WARNINGS, f"-I{INCLUDE}"]
    flags += ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    argv = [*host_cc, *flags, str(HELD_C), str(FOLDER / "held_bench.c"), "-o", str(target)]
    subprocess.run(argv, check=True, timeout=120)
    ffi = FFI()
    ffi.cdef(BENCH + declarations(INCLUDE / "ferrule" / "held.h"))
    return ffi, ffi.dlopen(str(target))


class Run:
    """A run with three devices, x, y and z in the order of their addresses, and a list of `capacity` entries.

    `order` states which devices have the numbers 0, 1 and 2.
    """

    def __init__(
        self, library: tuple[Any, Any], capacity: int = 6, *, with_info: bool = True, order: str = "xyz"
    ) -> None:
        self.ffi, self.lib = library
        self.lib.held_bench = self.ffi.new("struct held_bench *", {"limit_us": 1000})[0]
        self._letters = self.ffi.new("char[]", b"xyz")
        places = [self.ffi.addressof(self._letters, "xyz".index(letter)) for letter in order]
        self._handles = self.ffi.new(
            "ferrule_device_t *[]", [self.ffi.cast("ferrule_device_t *", place) for place in places]
        )
        self._entries = self.ffi.new("struct ferrule_held_entry[]", capacity + 1)
        self._entries[capacity].device = 0xBAD
        self.info = self.ffi.new("struct ferrule_run_info *", {"failed_operator": 0xFFFF_FFFF})
        self.held = self.ffi.new(
            "struct ferrule_held *",
            {
                "handles": self._handles,
                "entries": self._entries,
                "capacity": capacity,
                "index": 7,
                "info": self.info if with_info else self.ffi.NULL,
            },
        )
        self._capacity = capacity

    def fail(self, pair: str, status: Status) -> None:
        self.lib.held_bench.failing = pair.encode()
        self.lib.held_bench.failure = status

    def call(self, name: str, device: int) -> Status:
        return Status(getattr(self.lib, f"ferrule_held_{name}")(self.held, device))

    def open_set(self, *devices: int) -> Status:
        numbers = self.ffi.new("uint32_t[]", devices)
        return Status(self.lib.ferrule_held_open_set(self.held, numbers, len(devices)))

    def open_pools(self, pools: list[tuple[int, int]], devices: tuple[int, ...] = ()) -> tuple[Status, list[int]]:
        """Open devices and a member of each pool, given by its first member and its size; return the members, too."""
        chosen = self.ffi.new("uint32_t[]", [99] * len(pools))
        rows = [(first, count, chosen + index) for index, (first, count) in enumerate(pools)]
        given = self.ffi.new("struct ferrule_held_pool[]", rows)
        numbers = self.ffi.new("uint32_t[]", devices) if devices else self.ffi.NULL
        status = self.lib.ferrule_held_open_pools(self.held, numbers, len(devices), given, len(pools))
        return Status(status), list(chosen)

    def trace(self) -> list[tuple[int, int, int]]:
        """Return the device, the call and the status of all calls that are reported from now on; it grows."""
        told: list[tuple[int, int, int]] = []

        def on_device(_: object, _index: int, device: int, call: int, status: int) -> None:
            told.append((device, call, status))

        self._on_device = self.ffi.callback("void(void *, uint32_t, uint32_t, uint32_t, int32_t)", on_device)
        self.info.on_device = self._on_device
        return told

    def given_us(self) -> list[int]:
        """Return the limits of the calls that opened devices."""
        bench = self.lib.held_bench
        return list(bench.given_us[0 : bench.opened])

    def end(self, status: Status = Status.OK) -> Status:
        """End the run and return its status; check that the memory behind the entries is unchanged."""
        result = Status(self.lib.ferrule_held_end(self.held, status))
        assert self._entries[self._capacity].device == 0xBAD
        return result

    def calls(self) -> str:
        """Return the calls so far, such as "ax ox"."""
        bench = self.lib.held_bench
        text = self.ffi.buffer(bench.calls, 2 * bench.count)[:].decode()
        return " ".join(text[at : at + 2] for at in range(0, len(text), 2))


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("", ""),
        ("activate 0", "dx"),
        ("activate 0, open 0", "cx dx"),
        ("activate 0, open 0, activate 1, open 1, activate 2, open 2", "cz dz cy dy cx dx"),
        ("activate 0, activate 1, open 1, open 0", "cx cy dy dx"),
        ("activate 0, open 0, activate 1, close 0", "dy dx"),
        ("activate 0, activate 1, activate 2, deactivate 1", "dz dx"),
    ],
)
def test_the_end_gives_back_all_that_is_held_the_last_first(library: tuple[Any, Any], taken: str, given: str) -> None:
    run = Run(library)
    for name, device in (each.split() for each in taken.split(", ") if each):
        assert run.call(name, int(device)) == Status.OK
    before = run.calls()
    assert run.end() == Status.OK
    assert run.calls().removeprefix(before).strip() == given
    assert (run.held.count, run.info.failed_operator) == (0, 0xFFFF_FFFF)
    assert run.end() == Status.OK
    assert run.calls().removeprefix(before).strip() == given  # no call is made twice


@pytest.mark.parametrize(
    ("own", "failing", "first"),
    [(Status.OK, Status.DEVICE, Status.DEVICE), (Status.MEMORY, Status.DEVICE, Status.MEMORY)],
)
@pytest.mark.parametrize("pair", ["cx", "dx", "dy"])
def test_the_first_error_stays_and_the_rest_is_given_back(
    library: tuple[Any, Any], pair: str, own: Status, failing: Status, first: Status
) -> None:
    run = Run(library)
    for name, device in (("activate", 1), ("activate", 0), ("open", 0)):
        run.call(name, device)
    run.fail(pair, failing)
    assert run.end(own) == first
    assert run.calls() == "ay ax ox cx dx dy"
    assert (run.held.count, run.info.failed_operator) == (0, 7)


def test_nothing_is_taken_without_an_entry_for_it(library: tuple[Any, Any]) -> None:
    run = Run(library, 1)
    assert run.call("activate", 0) == Status.OK
    assert run.call("open", 0) == Status.MEMORY
    assert run.call("activate", 1) == Status.MEMORY
    assert run.end(Status.MEMORY) == Status.MEMORY
    assert run.calls() == "ax dx"


@pytest.mark.parametrize(("name", "pair"), [("activate", "ax"), ("open", "ox")])
def test_what_fails_is_not_held(library: tuple[Any, Any], name: str, pair: str) -> None:
    run = Run(library, with_info=False)
    run.fail(pair, Status.BUSY)
    assert run.call(name, 0) == Status.BUSY
    assert (run.held.count, run.end(Status.BUSY), run.calls()) == (0, Status.BUSY, pair)


@pytest.mark.parametrize("order", ["".join(each) for each in itertools.permutations("xyz")])
@pytest.mark.parametrize("numbers", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_a_set_is_opened_in_the_order_of_addresses(
    library: tuple[Any, Any], order: str, numbers: tuple[int, ...]
) -> None:
    run = Run(library, order=order)
    assert run.open_set(*numbers) == Status.OK
    assert run.calls() == "ox oy oz"
    assert run.end() == Status.OK
    assert run.calls() == "ox oy oz cz cy cx"


def test_a_set_may_have_some_of_the_devices(library: tuple[Any, Any]) -> None:
    run = Run(library, order="zxy")
    assert run.call("activate", 1) == Status.OK
    assert run.open_set(0, 2) == Status.OK
    assert run.call("close", 2) == Status.OK
    assert run.end() == Status.OK
    assert run.calls() == "ax oy oz cy cz dx"


@pytest.mark.parametrize(
    ("failing", "calls", "told"),
    [
        ("ox", "ox", [(1, Call.OPEN, Status.DEVICE)]),
        ("oy", "ox oy cx", [(1, Call.OPEN, 0), (2, Call.OPEN, Status.DEVICE), (1, Call.CLOSE, 0)]),
        (
            "oz",
            "ox oy oz cy cx",
            [
                *((1, Call.OPEN, 0), (2, Call.OPEN, 0), (0, Call.OPEN, Status.DEVICE)),
                *((2, Call.CLOSE, 0), (1, Call.CLOSE, 0)),
            ],
        ),
    ],
)
def test_a_set_is_opened_whole_or_not_at_all(
    library: tuple[Any, Any], failing: str, calls: str, told: list[tuple[int, int, int]]
) -> None:
    run = Run(library, order="zxy")
    assert run.call("activate", 0) == Status.OK
    run.fail(failing, Status.DEVICE)
    trace = run.trace()
    assert run.open_set(0, 1, 2) == Status.DEVICE
    assert (run.calls(), trace) == (f"az {calls}", told)
    assert run.held.count == 1
    assert run.end(Status.DEVICE) == Status.DEVICE
    assert run.calls() == f"az {calls} dz"


def test_a_set_without_entries_for_all_is_not_opened(library: tuple[Any, Any]) -> None:
    run = Run(library, 2)
    assert run.open_set(0, 1, 2) == Status.MEMORY
    assert (run.calls(), run.held.count) == ("ox oy cy cx", 0)
    assert run.open_set(1, 2) == Status.OK


@pytest.mark.parametrize(
    ("limit_us", "wait_us", "given"), [(1000, 300, [1000, 700, 400]), (1000, 600, [1000, 400, 0]), (0, 5, [0, 0, 0])]
)
def test_the_devices_of_a_set_share_one_limit(
    library: tuple[Any, Any], limit_us: int, wait_us: int, given: list[int]
) -> None:
    run = Run(library)
    run.lib.held_bench.now_us = 2**32 - 400  # the clock wraps
    run.lib.held_bench.limit_us, run.lib.held_bench.wait_us = limit_us, wait_us
    assert run.open_set(2, 1, 0) == Status.OK
    assert run.given_us() == given


@pytest.mark.parametrize(
    ("limit_us", "wait_us", "pair", "expected"),
    [
        (1000, 1000, "oy", Status.TIMEOUT),  # the first device has used up the time
        (1000, 10, "oy", Status.BUSY),  # the platform cannot wait
        (0, 10, "oy", Status.BUSY),  # the platform does not wait
        (1000, 1000, "ox", Status.BUSY),
    ],
)
def test_a_set_times_out_as_a_whole(
    library: tuple[Any, Any], limit_us: int, wait_us: int, pair: str, expected: Status
) -> None:
    run = Run(library)
    run.lib.held_bench.limit_us, run.lib.held_bench.wait_us = limit_us, wait_us
    run.fail(pair, Status.BUSY)
    assert run.open_set(0, 1) == expected
    assert run.held.count == 0


@pytest.mark.parametrize(
    ("free_at_us", "chosen", "calls", "now_us"),
    [
        ((0, 0, 0), 0, "ox", 0),
        ((9, 0, 0), 1, "ox oy", 0),
        ((9, 9, 0), 2, "ox oy oz", 0),
        ((600, 700, 800), 0, "ox oy oz ox", 600),  # waits for the first, and keeps it
    ],
)
def test_any_free_member_of_a_pool_is_opened(
    library: tuple[Any, Any], free_at_us: tuple[int, ...], chosen: int, calls: str, now_us: int
) -> None:
    run = Run(library)
    run.lib.held_bench.free_at_us = free_at_us
    trace = run.trace()
    assert run.open_pools([(0, 3)]) == (Status.OK, [chosen])
    assert (run.calls(), run.lib.held_bench.now_us) == (calls, now_us)
    assert trace == [(chosen, Call.OPEN, 0)]
    assert run.end() == Status.OK
    assert run.calls() == f"{calls} c{'xyz'[chosen]}"


def test_another_member_than_the_awaited_one_may_be_free_first(library: tuple[Any, Any]) -> None:
    run = Run(library)
    run.lib.held_bench.limit_us = 50_000
    run.lib.held_bench.free_at_us = (40_000, 12_000, 0)
    assert run.open_pools([(0, 2)]) == (Status.OK, [1])
    assert run.lib.held_bench.now_us == 15_000  # at the end of a slice of the wait


def test_a_run_holds_nothing_while_a_pool_has_no_free_member(library: tuple[Any, Any]) -> None:
    run = Run(library)
    run.lib.held_bench.free_at_us = (0, 300, 300)
    assert run.open_pools([(1, 2)], devices=(0,)) == (Status.OK, [1])
    assert run.calls() == "ox oy oz cx oy ox"
    assert run.given_us() == [1000, 0, 0, 1000, 700]
    assert run.end() == Status.OK
    assert run.calls() == "ox oy oz cx oy ox cx cy"


@pytest.mark.parametrize(
    ("users", "turns", "awaited"),
    [
        ((2, 1, 2), 0, "y"),
        ((2, 2, 1), 0, "z"),
        ((1, 1, 1), 0, "x"),
        ((1, 1, 1), 3, "x"),  # nine turns of all three
        ((2, 1, 1), 0, "y"),
    ],
)
def test_a_run_waits_in_the_shortest_queue(
    library: tuple[Any, Any], users: tuple[int, ...], turns: int, awaited: str
) -> None:
    run = Run(library)
    bench = run.lib.held_bench
    bench.free_at_us, bench.users, bench.turns = (500, 500, 500), users, turns
    assert run.open_pools([(0, 3)]) == (Status.OK, ["xyz".index(awaited)])
    assert run.calls() == f"ox oy oz o{awaited}"
    assert bench.places == 0


@pytest.mark.parametrize(("turns", "awaited"), [(0, "x"), (1, "y"), (2, "x"), (3, "y")])
def test_of_equal_queues_another_one_is_next_at_each_turn(library: tuple[Any, Any], turns: int, awaited: str) -> None:
    """With turns of x only, so that the sum is not always even."""
    run = Run(library)
    bench = run.lib.held_bench
    bench.free_at_us, bench.turns, bench.turns_of = (500, 500, 0), turns, b"x"
    assert run.open_pools([(0, 2)])[0] == Status.OK
    assert run.calls() == f"ox oy o{awaited}"


@pytest.mark.parametrize("free_at_us", [(40_000, 12_000, 0), (40_000, 40_000, 0), (90_000, 90_000, 0)])
def test_no_place_is_left_behind(library: tuple[Any, Any], free_at_us: tuple[int, ...]) -> None:
    run = Run(library)
    run.lib.held_bench.limit_us = 50_000
    run.lib.held_bench.free_at_us = free_at_us
    expected = Status.TIMEOUT if free_at_us[0] > 50_000 else Status.OK
    assert run.open_pools([(0, 2)])[0] == expected
    assert run.lib.held_bench.places == 0


def test_a_member_that_was_waited_for_is_given_back_with_the_rest(library: tuple[Any, Any]) -> None:
    """The second pool is full, too: the run waits for one of its members, and holds nothing meanwhile."""
    run = Run(library)
    run.lib.held_bench.free_at_us = (300, 600, 0)
    assert run.open_pools([(0, 1), (1, 1)], devices=(2,)) == (Status.OK, [0, 1])
    assert run.calls() == "oz ox cz ox oz oy cz cx oy oz ox"
    assert run.lib.held_bench.now_us == 600


def test_a_set_may_have_several_pools(library: tuple[Any, Any]) -> None:
    run = Run(library)
    run.lib.held_bench.free_at_us = (5, 0, 0)
    assert run.open_pools([(0, 2), (2, 1)]) == (Status.OK, [1, 2])
    assert run.held.count == 2


@pytest.mark.parametrize(
    ("limit_us", "expected", "calls"),
    [(1000, Status.TIMEOUT, "ox oy ox ox oy"), (0, Status.BUSY, "ox oy")],
)
def test_a_pool_without_a_free_member_times_out(
    library: tuple[Any, Any], limit_us: int, expected: Status, calls: str
) -> None:
    run = Run(library)
    run.lib.held_bench.limit_us = limit_us
    run.lib.held_bench.free_at_us = (9000, 9000, 0)
    trace = run.trace()
    assert run.open_pools([(0, 2)])[0] == expected
    assert (run.calls(), run.held.count) == (calls, 0)
    assert trace == [(1, Call.OPEN, expected)]


@pytest.mark.parametrize("failing", ["ox", "oy"])
def test_a_member_that_fails_is_an_error(library: tuple[Any, Any], failing: str) -> None:
    run = Run(library)
    run.lib.held_bench.free_at_us = (5, 0, 0)
    run.fail(failing, Status.DEVICE)
    trace = run.trace()
    assert run.open_pools([(0, 2)], devices=(2,))[0] == Status.DEVICE
    assert trace == [("xy".index(failing[1]), Call.OPEN, Status.DEVICE)]
    assert run.held.count == 0
    assert run.calls().split()[-1] == "cz"


def test_a_pool_on_a_platform_that_cannot_wait(library: tuple[Any, Any]) -> None:
    run = Run(library)
    run.fail("ox", Status.BUSY)  # also with a time
    assert run.open_pools([(0, 1)])[0] == Status.BUSY
    assert run.calls() == "ox ox"


@pytest.mark.parametrize("lost", ["x", "y", "z"])
def test_a_run_that_stops_a_lost_device_fails(library: tuple[Any, Any], lost: str) -> None:
    """Its inputs may have changed before the device was stopped."""
    run = Run(library)
    run.lib.held_bench.lost = lost.encode()
    begin = partial(run.lib.ferrule_held_begin, run.held, run.ffi.NULL)
    assert [begin(), begin()] == [Status.DEVICE] * 2
    assert run.lib.held_bench.lost == lost.encode()
    run.lib.held_bench.stops = True
    assert [begin(), begin()] == [Status.DEVICE, Status.OK]
    assert run.calls() == ""


def test_a_cancelled_run_does_not_wait_for_a_pool(library: tuple[Any, Any]) -> None:
    run = Run(library)
    assert run.lib.ferrule_held_begin(run.held, run.ffi.NULL) == Status.OK
    run.lib.held_bench.limit_us = 50_000
    run.lib.held_bench.free_at_us = (40_000, 40_000, 0)
    run.lib.ferrule_run_cancel(run.info)
    assert run.open_pools([(0, 2)])[0] == Status.CANCELLED
    assert run.calls() == "ox oy ox"
    assert run.lib.held_bench.places == 0


def test_a_request_waits_for_a_run(library: tuple[Any, Any]) -> None:
    """A cancellation just before a run begins is for this run, and ends with it."""
    run = Run(library)
    run.lib.ferrule_run_cancel(run.info)
    for expected in (Status.CANCELLED, Status.OK):
        assert run.lib.ferrule_held_begin(run.held, run.ffi.NULL) == Status.OK
        assert run.lib.ferrule_held_next(run.held, 0) == expected
        assert run.end(expected) == expected


def test_a_request_that_comes_too_late_is_for_its_own_run(library: tuple[Any, Any]) -> None:
    run = Run(library)
    assert run.lib.ferrule_held_begin(run.held, run.ffi.NULL) == Status.OK
    run.lib.ferrule_run_cancel(run.info)
    assert run.end() == Status.OK
    assert run.lib.ferrule_held_begin(run.held, run.ffi.NULL) == Status.OK
    assert run.lib.ferrule_held_next(run.held, 0) == Status.OK


def test_a_run_without_information_is_never_cancelled(library: tuple[Any, Any]) -> None:
    run = Run(library, with_info=False)
    assert run.lib.ferrule_held_begin(run.held, run.ffi.NULL) == Status.OK
    assert run.lib.ferrule_held_next(run.held, 0) == Status.OK
    assert run.end() == Status.OK
