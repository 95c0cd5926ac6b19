# SPDX-License-Identifier: Apache-2.0
"""The judge of transfers and the search for bytes that nobody wrote, on both sides of each decision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ferrule.devices.completeness import CERTAIN, Completeness
from ferrule.devices.contract import Account, Breach, Command, ContractError, Operand, merged, minus

BASE = 0x2000_0000
X = Operand(name="x", address=BASE, size_bytes=32, is_input=True)
Y = Operand(name="y", address=BASE + 64, size_bytes=32, writable=True, is_output=True)
SCRATCH = Operand(name="scratch", address=BASE + 96, size_bytes=16, writable=True)
Z = Operand(name="z", address=BASE + 128, size_bytes=64)
OPERANDS = (X, Y, SCRATCH)


def account() -> Account:
    found = Account()
    found.watch([(BASE, 192)], [*OPERANDS, Z])
    found.add_device("npu0")
    return found


def judged(found: Account, address: int, size: int, *, write: bool, device: str = "npu0") -> ContractError | None:
    return found.judge(device, address, size, write=write, cause=lambda: "a write of 0x1 to GO")


READ, WRITE = False, True
TRANSFERS = {
    "the whole input": (X.address, 32, READ, None, ""),
    "the first byte before the input": (X.address - 1, 2, READ, Breach.OUTSIDE, "bytes of no tensor|'x'"),
    "one byte beyond the input": (X.address, 33, READ, Breach.OUTSIDE, "1 B beyond the end of 'x' (32 B)"),
    "a write to the input": (X.address + 31, 1, WRITE, Breach.DIRECTION, "'x', which the command only reads"),
    "the last byte of the output": (Y.end - 1, 1, WRITE, None, ""),
    "the output, and into the scratch behind it": (
        *(Y.address, 33, WRITE, Breach.OUTSIDE),
        "1 B beyond the end of 'y' (32 B), into 'scratch'",
    ),
    "a read from the output into the scratch": (
        *(Y.end - 4, 8, READ, Breach.OUTSIDE),
        "4 B beyond the end of 'y' (32 B), into 'scratch'",
    ),
    "the scratch behind the output": (SCRATCH.address, 16, WRITE, None, ""),
    "from the input to its neighbour's place": (X.address + 16, 32, WRITE, Breach.DIRECTION, "'x', which the command"),
    "one byte beyond the scratch": (SCRATCH.end - 1, 2, WRITE, Breach.OUTSIDE, "1 B beyond the end of 'scratch'"),
    "a read of the output": (Y.address, 32, READ, None, ""),
    "another tensor": (Z.address, 4, WRITE, Breach.OUTSIDE, "the place of 'z'"),
    "nothing": (Z.address, 0, WRITE, None, ""),
    "memory that is not watched": (BASE + 192, 4, WRITE, None, ""),
}


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_a_transfer_of_a_running_command(transfer: str) -> None:
    address, size, write, breach, text = TRANSFERS[transfer]
    found = account()
    found.begin(Command("layer 'l' (step 0)", ["npu0"], OPERANDS))
    error = judged(found, address, size, write=write)
    if breach is None:
        assert error is None
        return
    assert error is not None
    assert (error.breach, error.device, error.command) == (breach, "npu0", "layer 'l' (step 0)")
    assert any(part in str(error) for part in text.split("|"))
    assert f"{'writes' if write else 'reads'} {size} B at {address:#x}, asked for by a write of 0x1 to GO" in str(error)
    assert str(error).endswith("while it runs layer 'l' (step 0)")


@pytest.mark.parametrize("write", [READ, WRITE])
def test_an_operand_inside_of_another(write: bool) -> None:
    """A transfer may lie in either; one that leaves both is named by the one that reaches further."""
    inner = Operand(name="inner", address=Y.address + 8, size_bytes=8, writable=True)
    found = account()
    found.begin(Command("l", ["npu0"], (inner, Y, SCRATCH)))
    assert judged(found, inner.address, 24, write=write) is None
    error = judged(found, inner.address, 25, write=write)
    assert error is not None
    assert "1 B beyond the end of 'y' (32 B), into 'scratch'" in str(error)


@pytest.mark.parametrize("write", [READ, WRITE])
def test_time(write: bool) -> None:
    """A command's memory is the device's from its begin to its end, and of no other device."""
    found = account()
    command = Command("layer 'l' (step 0)", ["npu0"], OPERANDS)

    def late() -> ContractError:
        error = judged(found, Y.address, 4, write=write)
        assert error is not None
        assert error.breach is Breach.LATE
        return error

    assert "has no command" in str(late())
    found.begin(command)
    assert judged(found, Y.address, 4, write=write) is None
    other = judged(found, Y.address, 4, write=write, device="npu1")
    assert other is not None
    assert other.breach is Breach.LATE
    found.end(command)
    error = late()
    assert error.command == "layer 'l' (step 0)"
    assert str(error).endswith("after layer 'l' (step 0), which is over")
    again = command.again()
    found.begin(again)
    assert again.written == ([] if not write else again.written)
    assert judged(found, Y.address, 4, write=write) is None
    found.end(again, "was aborted")
    assert str(late()).endswith("after layer 'l' (step 0), which was aborted")


def test_two_commands_in_flight() -> None:
    """The end of the first takes its memory away, while the second goes on."""
    found = account()
    first = Command("first", ["npu0"], (X, Y))
    second = Command("second", ["npu0"], (Y, Operand(name="z", address=Z.address, size_bytes=64, writable=True)))
    found.begin(first)
    found.begin(second)
    assert judged(found, Y.address, 4, write=WRITE) is None
    found.end(first)
    assert judged(found, X.address, 4, write=READ) is not None
    assert judged(found, Z.address, 4, write=WRITE) is None
    assert (found.commands, len(found.running)) == (2, 1)


def test_a_breach_names_the_command_of_its_own_device() -> None:
    found = account()
    found.begin(Command("other", ["npu1"], (X,)))
    found.begin(Command("mine", ["npu0"], (Y,)))
    error = judged(found, X.address, 4, write=WRITE)
    assert error is not None
    assert error.command == "mine"


@pytest.mark.parametrize(("tensor", "transfer", "at", "breach"), [
    (16, 1, 0, None), (16, 1, 3, None), (64, 1, 0, None), (128, 1, 0, Breach.ALIGNMENT),
    (1, 4, 8, None), (1, 4, 6, Breach.ALIGNMENT),
])  # fmt: skip
def test_alignment(tensor: int, transfer: int, at: int, breach: Breach | None) -> None:
    """A tensor is judged by its own address, and a transfer by its first byte."""
    found = account()
    found.add_device("npu0", tensor=tensor, transfer=transfer)
    found.begin(Command("l", ["npu0"], OPERANDS))
    error = judged(found, Y.address + at, 4, write=WRITE)
    assert (error and error.breach) == breach


def test_ranges() -> None:
    assert merged([(8, 12), (0, 4), (4, 6), (10, 16), (5, 5)]) == [(0, 6), (8, 16)]
    assert minus([(0, 10), (20, 30)], [(2, 4), (8, 22), (29, 40)]) == [(0, 2), (4, 8), (22, 29)]
    assert minus([(0, 10)], []) == [(0, 10)]


# ---- bytes that nobody wrote


class Machine:
    """A memory with one device, whose commands are carried out by a function."""

    def __init__(self, *, exclusive: bool = False) -> None:
        self.memory = np.zeros(192, np.uint8)
        self.account = account()
        self.completeness = Completeness(self.account, lambda address, size: self.memory[address - BASE :][:size])
        self.command = Command("layer 'l' (step 0)", ["npu0"], OPERANDS, exclusive=exclusive)

    def run(self, work: Callable[[Machine], None]) -> ContractError | None:
        command = self.command.again()
        self.account.begin(command)
        self.completeness.begin(command)
        work(self)
        self.account.end(command)
        return self.completeness.end(command)

    def device(self, low: int, high: int, value: int = 7) -> None:
        assert judged(self.account, Y.address + low, high - low, write=WRITE) is None
        self.core(low, high, value)

    def core(self, low: int, high: int, value: int = 7) -> None:
        self.memory[64 + low : 64 + high] = value

    @property
    def fill(self) -> list[int]:
        return self.memory[64:96].tolist()


def test_a_whole_output_is_complete() -> None:
    """In pieces, in any order, over each other, by the device or by the core, or by both."""
    machine = Machine()
    for work in (
        lambda m: m.device(0, 32),
        lambda m: [m.device(16, 32), m.device(0, 17), m.device(4, 5)],
        lambda m: m.core(0, 32),
        lambda m: [m.device(0, 31), m.core(31, 32)],
    ):
        assert machine.run(work) is None


def test_an_output_that_nobody_writes_is_found_at_once() -> None:
    error = Machine().run(lambda _: None)
    assert error is not None
    assert (error.breach, error.tensor, error.command) == (Breach.UNWRITTEN, "y", "layer 'l' (step 0)")
    assert "neither the device nor the core has written bytes 0 to 31 of its output 'y' (32 B at 0x20000040)" in str(
        error
    )


@pytest.mark.parametrize("size", [CERTAIN, CERTAIN - 1, 1])
def test_a_gap(size: int) -> None:
    """Eight bytes are certain; fewer need a second run with the same inputs, whose fill differs."""
    machine = Machine()
    first = machine.run(lambda m: m.device(0, 32 - size))
    if size < CERTAIN:
        assert first is None
        first = machine.run(lambda m: m.device(0, 32 - size))
    assert first is not None
    assert first.address == Y.end - size


def test_a_gap_of_a_device_that_alone_writes_is_found_at_once() -> None:
    error = Machine(exclusive=True).run(lambda m: m.device(0, 31))
    assert error is not None
    assert "byte 31 of its output 'y'" in str(error)


def test_a_byte_with_the_value_of_its_fill_is_no_gap() -> None:
    """The core writes what is there already, in each of many runs with the same inputs."""
    machine = Machine()
    values: list[int] = []

    def work(m: Machine) -> None:
        values.append(m.fill[31])
        m.device(0, 31)
        m.core(31, 32, values[0])

    for _ in range(4):
        assert machine.run(work) is None
    assert len(set(values)) == 4


def test_other_inputs_prove_nothing_until_there_are_many_runs() -> None:
    machine = Machine()

    def work(m: Machine) -> None:
        m.memory[0] += 1  # after the fill: an input of the next run
        m.device(0, 31)

    found = [machine.run(work) for _ in range(CERTAIN)]
    assert found[: CERTAIN - 1] == [None] * (CERTAIN - 1)
    assert found[-1] is not None


def test_a_command_that_fails_leaves_what_it_likes() -> None:
    machine = Machine()
    command = machine.command.again()
    machine.account.begin(command)
    machine.completeness.begin(command)
    machine.completeness.forget(command)
    assert machine.completeness.end(command) is None


def test_the_fill_spares_inputs() -> None:
    """An output in the place of an input is not filled, and not missed where the input was."""
    machine = Machine()
    inside = Operand(name="a", address=Y.address + 8, size_bytes=8, is_input=True)
    machine.command = Command("l", ["npu0"], (inside, Y), exclusive=True)
    machine.memory[72:80] = range(1, 9)

    def work(m: Machine) -> None:
        assert m.fill[8:16] == list(range(1, 9))
        m.device(0, 8)
        m.device(16, 32)

    assert machine.run(work) is None
