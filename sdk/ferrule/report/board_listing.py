# SPDX-License-Identifier: Apache-2.0
"""Lists the boards: the output of `ferrule boards`, as data."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.boards import Board, Cpu, board_names, load_board
from ferrule.emulation import engine, engine_names
from ferrule.report.base import part_of
from ferrule.report.sections import Part, Table, joined, names, numbers

SCHEMA_VERSION = 2


@frozen
class ListedMemory:
    """A memory of a board."""

    name: str
    kind: str
    """"flash" or "ram"."""
    address: int
    size_bytes: int


@frozen
class ListedBoard:
    """A board and the engines that run it."""

    name: str
    title: str
    folder: str
    cpu: Cpu
    clock_hz: int
    memories: tuple[ListedMemory, ...]
    engines: tuple[str, ...]
    """Names of the engines that run the board."""
    refusals: dict[str, str]
    """The other engines, and why each does not run the board."""


@frozen
class BoardListing:
    """All boards."""

    schema_version: int
    boards: tuple[ListedBoard, ...]

    def sections(self) -> Part:
        """Return the table of boards."""
        rows = [
            (
                board.name,
                board.cpu.type + (f" + {board.cpu.fpu}" if board.cpu.hard_float else ""),
                f"{board.clock_hz / 1e6:g} MHz",
                "\n".join(f"{each.name} {each.size_bytes // 1024:,} KiB" for each in board.memories),
                joined(*board.engines),
                board.title,
            )
            for board in self.boards
        ]
        return Part(
            "Boards",
            (
                Table(
                    "",
                    (
                        *names("board"),
                        "core",
                        *numbers("clock"),
                        *names("memories"),
                        "engines",
                        "title",
                    ),
                    rows,
                ),
            ),
        )


def list_boards() -> BoardListing:
    """Return all boards; FerruleError if a folder of FERRULE_BOARDS or a board's file is invalid."""
    boards = tuple(_listed(load_board(name)) for name in board_names())
    return BoardListing(schema_version=SCHEMA_VERSION, boards=boards)


def _listed(board: Board) -> ListedBoard:
    reasons = {name: engine(name).refuses(board) for name in engine_names()}
    return part_of(
        ListedBoard,
        board,
        folder=str(board.folder),
        memories=tuple(part_of(ListedMemory, each, kind=str(each.kind)) for each in board.memories),
        engines=tuple(name for name, reason in reasons.items() if reason is None),
        refusals={name: reason for name, reason in reasons.items() if reason is not None},
    )
