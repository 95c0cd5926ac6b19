# SPDX-License-Identifier: Apache-2.0
"""Bytes of outputs that nobody wrote: outputs are filled with a pattern when a command begins.

A byte that the device has not written, and that still holds its fill, was written by nobody, or with just this value.
Fills are random, so that eight such bytes are proof. Fewer are compared again when the command next has the same
inputs: the fill has changed then, and a written byte cannot hold both.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ferrule.devices.contract import Account, Command, ContractError
from ferrule.devices.model import Bytes

CERTAIN = 8
"""Bytes, or matches of the same byte in commands one after the other, that cannot hold their fills by accident."""
_SEED = 0x0F1E
"""Always the same, so that a run that is repeated finds the same bytes."""
_PATTERN_BYTES = 1 << 16
Memory = Callable[[int, int], Bytes]
"""Returns memory at an address, with a size, to be read and written."""


class Completeness:
    """Finds what commands leave unwritten."""

    def __init__(self, account: Account, memory: Memory) -> None:
        self._account = account
        self._memory = memory
        self._pattern = np.tile(np.random.default_rng(_SEED).integers(0, 256, _PATTERN_BYTES, np.uint8), 2)
        self._fills: dict[int, tuple[int, int]] = {}
        """By the number of a command that runs: the number of its fill, and a digest of its inputs."""
        self._turns: dict[str, int] = {}
        self._doubts: dict[str, _Doubts] = {}

    def begin(self, command: Command) -> None:
        """Fill the outputs of a command that has begun, except for bytes that hold inputs."""
        turn = self._turns[command.key] = self._turns.get(command.key, 0) + 1
        digest = 0
        for each in command.operands:
            if each.is_input:
                digest = zlib.crc32(self._memory(each.address, each.size_bytes).data, digest)
        self._fills[command.number] = (turn, digest)
        for _, spans in command.outputs:
            for low, high in spans:
                self._memory(low, high - low)[:] = self._fill(low, high - low, turn)

    def forget(self, command: Command) -> None:
        """Forget a command that has failed."""
        self._fills.pop(command.number, None)

    def end(self, command: Command) -> ContractError | None:
        """Return the error for a command that is over and has left bytes unwritten; None if there is no proof of it."""
        found = self._fills.pop(command.number, None)
        if found is None:
            return None
        fill, digest = found
        left: dict[int, int] = {}
        for output, spans in command.unwritten():
            untouched = [
                low + np.flatnonzero(self._memory(low, high - low) == self._fill(low, high - low, fill))
                for low, high in spans
            ]
            places = np.concatenate(untouched)
            if not places.size:
                continue
            before = self._doubts.get(command.key, _NO_DOUBTS)
            if proof := _proof(places, before, digest, exclusive=command.exclusive):
                return self._account.unwritten(command, output, *proof, int(places.size))
            left |= {place: before.matches.get(place, 0) + 1 for place in places.tolist()}
        if left or command.key in self._doubts:
            self._doubts[command.key] = _Doubts(digest=digest, matches=left)
        return None

    def _fill(self, address: int, size_bytes: int, turn: int) -> Bytes:
        """Return the fill of a range: those of two turns that follow each other differ in each byte."""
        begin = address % _PATTERN_BYTES
        if size_bytes <= _PATTERN_BYTES:
            whole = self._pattern[begin : begin + size_bytes]
        else:
            whole = np.resize(self._pattern[begin : begin + _PATTERN_BYTES], size_bytes)
        filled: Bytes = np.bitwise_xor(whole, np.uint8(turn & 0xFF))
        return filled


class _Doubts(NamedTuple):
    """Bytes that still held their fill when a command was over, too few to be certain."""

    digest: int
    """Of the inputs that the command had."""
    matches: Mapping[int, int]
    """By address: in how many commands one after the other."""


_NO_DOUBTS = _Doubts(digest=0, matches={})


def _proof(places: npt.NDArray[np.int64], before: _Doubts, digest: int, *, exclusive: bool) -> tuple[int, int] | None:
    """Return address and length of the first bytes that certainly nobody has written; None if there are none."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    for run in np.split(places, breaks):
        first, size = int(run[0]), int(run.size)
        if exclusive or size >= CERTAIN:
            return first, size
        for place in run.tolist():
            seen = before.matches.get(place, 0)
            if seen and (before.digest == digest or size * (seen + 1) >= CERTAIN):
                return first, size
    return None
