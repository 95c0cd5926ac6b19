# SPDX-License-Identifier: Apache-2.0
"""The parts of an executor that only a model with state has: its reset, and the update at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.firmware import Blob
from ferrule.codegen.device_code import OK
from ferrule.codegen.executor_part import ExecutorPart, member, refuse_null
from ferrule.codegen.plan import STATE
from ferrule.dom import (
    AddressOf,
    Enumeration,
    Enumerator,
    Evaluate,
    Expression,
    Function,
    Identifier,
    Index,
    Integer,
    Not,
    Return,
    Statement,
    call_of,
    return_if,
    unsigned,
)
from ferrule.graph import State
from ferrule.memory import STATE_WORD

WORD_OFFSET = Identifier("STATE_WORD_OFFSET")
VALID = Identifier("STATE_VALID")
_PLACE = member("memory", STATE)
_MASK = 0x7FFF_FFFF
"""Enumerators are at most INT_MAX; the word of valid states is its own for each model."""


@frozen
class Update:
    """One step of the update of the states, which happens as if all of them got their new values at once."""

    target: str
    """The tensor of a state's old value, whose place gets the new one."""
    source: str
    """The tensor that is copied there, or whose place is exchanged with it."""
    exchange: bool = False


def updates(states: Mapping[str, str], roots: Mapping[str, str]) -> tuple[Update, ...]:
    """Return the steps that give each state, by the tensor of its old value, the value of another tensor.

    `roots` has, for a tensor whose bytes are those of a state's old value, the tensor of that; a state whose new value
    has the root of its own old value keeps it. No step overwrites an old value that a later one needs: states whose old
    value no other state needs come first, and what is left are cycles, in which places are exchanged.
    """
    pending = {old: new for old, new in states.items() if roots.get(new) != old}
    needed = {old: roots.get(new, "") for old, new in pending.items()}
    found: list[Update] = []
    while pending:
        free = next((old for old in pending if old not in needed.values()), None)
        if free is not None:
            found.append(Update(target=free, source=pending.pop(free)))
            del needed[free]
            continue
        old = next(iter(pending))
        other = needed.pop(old)
        del pending[old]
        found.append(Update(target=old, source=other, exchange=True))
        reader = next(each for each, read in needed.items() if read == old)
        needed[reader] = other  # the exchange has put the old value there
        if reader == other:
            del pending[reader], needed[reader]
    return tuple(found)


class StateCode(ExecutorPart):
    """The part of the builder for a model with state; nothing for other models."""

    @property
    def has_state(self) -> bool:
        """Whether the model keeps state from run to run."""
        return self.storage.state is not None

    # ---- the interface

    def state_sizes(self) -> Iterator[Enumerator]:
        """Yield the public enumerators of the size and the alignment of the state."""
        if self.storage.state is not None:
            count = len(self.graph.states)
            yield Enumerator(
                self.constant(f"{STATE}_bytes"),
                self.storage.state_bytes,
                doc=f"State: {count} value{'' if count == 1 else 's'}, and a mark while the state is valid.",
            )
            yield Enumerator(
                self.constant(f"{STATE}_alignment"),
                self.storage.alignment(self.storage.state),
                doc="Alignment of the state, in bytes.",
            )

    def state_rule(self) -> str:
        """Return the description of the error of a run whose state is not valid; "" without state."""
        if not self.has_state:
            return ""
        return (
            f"\n@retval FERRULE_ERR_STATE the state is not valid until {self.prefix}_reset writes it: it was never "
            "written, or a run has failed or not ended"
        )

    def reset_function(self) -> Iterator[Function]:
        """Yield `ferrule_<model>_reset`."""
        if self.storage.state is not None:
            yield self.function(
                "reset",
                (self.parameter("memory"),),
                (refuse_null(Identifier("memory")), *self.checked_block(self.storage.state), *self._reset()),
                "Write the initial state to `memory`, whatever it held: the next run begins a new sequence. Before "
                "the first run, and after one that failed; not while a run uses this state.\n@retval FERRULE_OK\n"
                "@retval FERRULE_ERR_ARGUMENT a pointer is null, or the state is misaligned or too small; nothing was "
                "written",
            )

    # ---- the run

    def state_offsets(self, tensors: Iterable[str]) -> Iterator[Enumeration]:
        """Yield the offsets of the tensors that have the bytes of states, and the word of valid ones."""
        if not self.has_state:
            return
        rows = [Enumerator(self.offset_name(name), self.storage.offset(name)) for name in tensors]
        rows.append(Enumerator(WORD_OFFSET.name, self.storage.offset(STATE_WORD)))
        rows.append(Enumerator(VALID.name, int(self.lowered.digest[:8], 16) & _MASK | 1))
        yield Enumeration(
            tuple(rows), doc="Offsets of the state's values in its memory, and its mark while it is valid."
        )

    def begin_state(self) -> Iterator[Statement]:
        """Yield the check at the start of a run, which also makes the state invalid until the run has succeeded."""
        if self.has_state:
            begun = call_of("ferrule_state_begin", self._word(), VALID)
            yield return_if(Not(begun), Identifier("FERRULE_ERR_STATE"))

    def end_state(self) -> Iterator[Statement]:
        """Yield the statement that makes the state valid."""
        if self.has_state:
            yield Evaluate(call_of("ferrule_state_end", self._word(), VALID))

    def state_updates(self) -> tuple[Update, ...]:
        """Return the steps of the update after all operators, without the states that operators write in place."""
        roots = {
            name: root
            for name in (state.result for state in self.graph.states)
            if (root := self.storage.root(name)) in self.olds
        }
        placed = {state.source: state.result for state in self.graph.states if not self._is_in_place(state)}
        return updates(placed, roots)

    @cached_property
    def olds(self) -> frozenset[str]:
        """The tensors of the states' old values."""
        return frozenset(state.source for state in self.graph.states)

    def _is_in_place(self, state: State) -> bool:
        """Whether an operator has written the new value in the old one's place."""
        if self.graph.tensor(state.result).is_constant:
            return False
        placements = self.storage.plan.placements
        return placements[self.storage.root(state.result)] == placements[state.source]

    # ---- the reset

    def initial_values(self) -> Iterator[Blob]:
        """Yield the constants of the initial values that the reset copies; it sets the bytes of the others."""
        for state in self.graph.states:
            if _byte(state) is None:
                yield Blob(name=self._initial(state), data=state.initial)

    def _reset(self) -> Iterator[Statement]:
        """Yield the statements after the checks; bytes that no value has, such as the mark, become 0 first."""
        place, size = _PLACE, Identifier(self.constant(f"{STATE}_bytes"))
        yield Evaluate(call_of("memset", place, Integer(0), size))
        for state in self.graph.states:
            start = AddressOf(Index(place, Identifier(self.offset_name(state.source))))
            whole, byte = unsigned(state.initial.nbytes), _byte(state)
            if byte is None:
                yield Evaluate(call_of("memcpy", start, Identifier(self._initial(state)), whole))
            elif byte:
                yield Evaluate(call_of("memset", start, Integer(byte), whole))
        yield from self.end_state()
        yield Return(OK)

    def _initial(self, state: State) -> str:
        return f"{self.prefix}_initial_{self.lowered.variables[state.source]}"

    def _word(self) -> Expression:
        return AddressOf(Index(_PLACE, WORD_OFFSET))


def _byte(state: State) -> int | None:
    """Return the value of all bytes of a state after a reset; None if they differ."""
    found = np.unique(state.initial.reshape(-1).view(np.uint8))
    return int(found[0]) if len(found) == 1 else None
