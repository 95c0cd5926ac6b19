# SPDX-License-Identifier: Apache-2.0
"""What a plan needs of each memory of a board, and the boards that are considered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import placing_compiler
import pytest

from ferrule.backends.firmware import Scratch
from ferrule.boards import Board, load_board
from ferrule.codegen import CORE, Program, shared_region
from ferrule.firmware import fitting
from ferrule.firmware.fitting import BoardFit, fits, roomier_boards
from ferrule.firmware.job import SHARED, Job
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.network import Network

Choose = Callable[..., None]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Choose:
    """Return a function that sets the boards that are known."""

    def choose(*boards: Board) -> None:
        monkeypatch.setattr(fitting, "_boards", lambda: iter(boards))
        monkeypatch.setattr(fitting, "board_names", lambda: tuple(board.name for board in boards))

    return choose


def board(name: str = "one", *, stack_bytes: int | None = None, size_bytes: int = 1 << 20, **changed: object) -> Board:
    """Return a board whose memories have this size, and a stack of a stated size or none."""
    given = load_board("mps2-an386")
    placement = replace(given.placement, stack_bytes=stack_bytes or 16_384, stack_is_stated=stack_bytes is not None)
    memories = tuple(replace(each, size_bytes=size_bytes) for each in given.memories)
    fields = {"name": name, "placement": placement, "memories": memories, **changed}
    return replace(given, **fields)  # type: ignore[arg-type]


def network(name: str = "plain", count: int = 8, *, state: bool = False) -> Network:
    """Return a network of one layer, which adds an input of float32 to itself or to a state."""
    made = Network(name)
    info = TensorInfo("x", (1, count), DataType.FLOAT32)
    made.add_input(info)
    if state:
        made.add_state(replace(info, name="old"), np.zeros(info.shape, np.float32))
    made.set_outputs([made.add_add_layer("x", "old" if state else "x", name="y")])
    if state:
        made.set_state("old", "y")
    return made


def parts(fit: BoardFit) -> dict[str, int]:
    """Return the bytes of all memories by part."""
    return {part: size for need in fit.memories for part, size in need.parts.items()}


@pytest.mark.parametrize(("stack_bytes", "expected"), [(None, 2048), (5000, 5000)])
def test_a_stack_counts_as_stated_or_as_the_smallest(known: Choose, stack_bytes: int | None, expected: int) -> None:
    known(board(stack_bytes=stack_bytes))
    (fit,) = fits(network(), Job(board=board()))
    assert parts(fit)["stack"] == expected


def test_a_state_counts_where_there_is_one(known: Choose) -> None:
    known(board())
    (plain,), (stateful,) = (fits(network(state=state), Job(board=board())) for state in (False, True))
    assert "state" not in parts(plain)
    # The old value, and the word that marks it as valid; the new one is an output, which the caller's memory has.
    assert parts(stateful)["state"] == 8 * 4 + 4
    (need,) = (need for need in stateful.memories if "state" in need.parts)
    assert need.memory == board().placement.workspace


def test_a_memory_may_be_used_up_to_its_last_byte(known: Choose) -> None:
    place = board().placement.workspace
    need_bytes = 8 * 4 + 2048  # the output takes the place of the input, and the stack is in the same memory
    for missing in (0, 1):
        known(board(size_bytes=need_bytes - missing))
        (fit,) = fits(network(), Job(board=board()))
        assert fit.fits is (missing == 0)
        assert fit.missing == (f"1 B too many for ram '{place}'" if missing else "")


def test_the_jobs_own_board_comes_first_unless_it_is_known(known: Choose) -> None:
    known(board("one"), board("two"))
    assert [fit.board for fit in fits(network(), Job(board=board("own")))] == ["own", "one", "two"]
    assert [fit.board for fit in fits(network(), Job(board=board("two")))] == ["one", "two"]


def test_boards_with_one_core_share_a_program(known: Choose, monkeypatch: pytest.MonkeyPatch) -> None:
    emitted: list[str] = []
    emit = fitting.emit_program

    def emitting(networks: Sequence[Network], job: Job, *, limited: bool) -> Program:
        emitted.append(job.load_board().name)
        return emit(networks, job, limited=limited)

    monkeypatch.setattr(fitting, "emit_program", emitting)
    known(board("one"), board("two"), load_board("microbit"))
    assert all(fit.fits for fit in fits(network(), Job(board="microbit")))
    assert emitted == ["one", "microbit"]


def test_a_program_with_devices_is_that_of_its_board(known: Choose) -> None:
    bare = board("bare", expansions=())
    known(board("one"), bare, board("two"))
    scale = Quantization.of(0.1)
    added = Network("added")
    added.add_input(TensorInfo("x", (1, 4), DataType.INT8, quantization=scale))
    added.set_outputs([added.add_add_layer("x", "x", quantization=scale, name="y")])
    found = {fit.board: fit for fit in fits(added, Job(board=bare, backends=("Woofles", "CpuAcc")))}
    assert "board bare has 0 places for accelerators" in found["bare"].problem
    assert found["one"].fits
    assert found["two"].fits


def test_models_that_share_an_arena_need_the_largest(known: Choose) -> None:
    """One needs 40,000 bytes, since its output takes the place of its input, and the other one 20,000."""
    networks = [network("large", 10_000), network("small", 5_000)]
    known(board(size_bytes=200_000), board("tight", size_bytes=50_000))
    assert roomier_boards(networks, Job(board=board())) == ("one",)
    assert roomier_boards(networks, Job(board=board(), arena=SHARED)) == ("one", "tight")


def test_a_memory_that_the_plan_names_must_be_there(known: Choose, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch of a layer lies in the memory `dtcm`, which only one board has."""
    fast = placing_compiler.Program(
        scratch_bytes=32, key=32, placed=(), more=(Scratch(name="fast", size_bytes=40, memory="dtcm", alignment=16),)
    )
    graph = placing_compiler.Graph("fast")
    x = graph.add_input(placing_compiler.tensor("x", 4))
    placing_compiler.add_program(graph, "first", [x], [placing_compiler.tensor("y", 4)], fast)
    graph.set_outputs(["y"])
    region = shared_region("dtcm", 4096, 0, frozenset({CORE, placing_compiler.PLACING}))
    program = Program(artifacts=(placing_compiler.emit(graph, named=[region]),))
    monkeypatch.setattr(fitting, "emit_program", lambda networks, job, limited: program)
    own = board()
    dtcm = replace(own.memory(own.placement.workspace), name="dtcm", size_bytes=40)
    with_dtcm = board("with", memories=(*own.memories, dtcm))
    known(own, with_dtcm, board("short", memories=(*own.memories, replace(dtcm, size_bytes=39))))
    assert roomier_boards([], Job(board=with_dtcm)) == ("with",)
