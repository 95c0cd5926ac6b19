# SPDX-License-Identifier: Apache-2.0
"""Boards: reads a folder's Renode platform description (.repl) and board.toml."""

from ferrule.architectures import Cpu
from ferrule.backends.target import Memory, MemoryKind
from ferrule.boards.board import DEFAULT_STACK_BYTES, Board, Peripheral, Placement, QemuMachine
from ferrule.boards.catalogue import board_names, load_board, search_folders
from ferrule.boards.parser import read_platform
from ferrule.boards.repl import (
    Dictionary,
    Entry,
    Interrupt,
    NewObject,
    Platform,
    Range,
    Reference,
    Registration,
    Script,
    Value,
)

__all__ = [
    "DEFAULT_STACK_BYTES",
    "Board",
    "Cpu",
    "Dictionary",
    "Entry",
    "Interrupt",
    "Memory",
    "MemoryKind",
    "NewObject",
    "Peripheral",
    "Placement",
    "Platform",
    "QemuMachine",
    "Range",
    "Reference",
    "Registration",
    "Script",
    "Value",
    "board_names",
    "load_board",
    "read_platform",
    "search_folders",
]
