# SPDX-License-Identifier: Apache-2.0
"""The description of a network before anything is generated: the output of `ferrule inspect`, and what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.firmware.arena import ArenaPart
from ferrule.firmware.fitting import BoardFit
from ferrule.firmware.planned_time import PlannedTime
from ferrule.graph import brief
from ferrule.interface import name_of, spelled
from ferrule.report.base import Document, Measure, Row, flat
from ferrule.report.board_ranking import board_notes, board_table
from ferrule.report.estimates import Estimates, distinct_estimates, estimate_rows, estimates_part
from ferrule.report.inspection_parts import (
    ClassPart,
    DeviceCrossingPart,
    DivisionPart,
    LayerInspection,
    LayerKernelsPart,
    ScheduledPart,
    TensorPart,
)
from ferrule.report.islands import FloatIslandPart, islands_section
from ferrule.report.picture import EnvironmentPart, RegionPlanPart, surroundings
from ferrule.report.sections import (
    Column,
    Part,
    Picture,
    State,
    Table,
    Text,
    joined,
    names,
    numbers,
    page_part,
    part,
    plural,
    runner,
)

SCHEMA_VERSION = 2


@frozen
class Inspection(Document):
    """All facts about a network before it is built, and the arena that its firmware will have."""

    kind: str = "inspection"
    schema_version: int = SCHEMA_VERSION
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: tuple[TensorPart, ...]
    layers: tuple[LayerInspection, ...]
    macs: int
    constant_bytes: int
    whole_layers_bytes: int
    """The least arena found for the network's own activations: each layer in whole, without overlap and scratch."""
    arena: ArenaPart | None = None
    """The arena of the firmware; None if there is no firmware for the job."""
    planned: PlannedTime | None = None
    """The planned time of the firmware; None without one, or if the board's core has no table of its kernels."""
    arena_problem: str = ""
    """Why there is no firmware for the job, or by how much the arena exceeds the board's memory; usually empty."""
    division: DivisionPart | None = None
    """None if no backends were queried."""
    schedule: tuple[ScheduledPart, ...] | None = None
    """None unless it was requested."""
    crossings: tuple[DeviceCrossingPart, ...] | None = None
    """The tensors that cross between the core and devices in the firmware; None unless the schedule was requested."""
    kernels: tuple[LayerKernelsPart, ...] | None = None
    """The kernels of the firmware's layers, in the order of execution; None unless they were requested."""
    artifact: ClassPart | None = None
    """None unless a target of a C++ class was given."""
    islands: tuple[FloatIslandPart, ...] = ()
    """The parts of the firmware that compute in float32 although other layers compute with integers."""
    boards: tuple[BoardFit, ...] | None = None
    """Whether the firmware's plan fits each board, and what an inference takes there, the best first; None unless it
    was requested."""
    plan: tuple[RegionPlanPart, ...] = ()
    """The firmware's memory plan; without `arena`, that of the network's own activations alone."""
    signatures: tuple[str, ...] = ()
    """The signatures of the model's file, the network's own first; empty if it has none."""
    notes: tuple[str, ...] = ()
    """What the reader made of the model's file that the layers do not show."""
    environment: EnvironmentPart | None = None

    @property
    def estimates(self) -> Estimates:
        """What compilers expect of pre-compiled layers, with the layers' names; once if host and firmware agree."""
        finals = () if self.division is None else self.division.finals
        return distinct_estimates((layer.layer, layer.estimate) for final in finals for layer in final.layers)

    @override
    def measures(self) -> Iterator[Measure]:
        yield Measure("MACs", self.macs)
        sizes = {"constants": self.constant_bytes}
        if self.arena is not None:
            arena = self.arena
            sizes |= {"arena": arena.size_bytes, "activations": arena.activation_bytes, "state": arena.state_bytes}
        yield from (Measure(counter, size, unit="B") for counter, size in sizes.items())
        if self.planned is not None:
            yield Measure("planned cycles", self.planned.cycles)
        yield from (Measure("MACs", layer.macs, "layer", layer.name, layer.type) for layer in self.layers)

    @override
    def table_rows(self) -> Iterator[Row]:
        for _, layer in self._nested():
            yield {"model": self.name, "row": "layer", **flat(layer, name="layer", inner="")}
        yield from estimate_rows({"model": self.name}, self.estimates)

    @override
    def sections(self) -> Part:
        types = {layer.name: layer.type for layer in self.layers}
        return Part(
            self.name,
            (
                *self._ends(),
                part("Layers", self._layers()),
                Text(f"{len(self.layers)} layers, {self.macs:,} MACs, {self.constant_bytes:,} B of constants"),
                *self._arena(),
                *self._planned(),
                islands_section(self.islands),
                self._plan(),
                None if self.division is None else self.division.section(types),
                estimates_part(self.estimates),
                *self._calls(),
                self._kernels(),
                None if self.artifact is None else self.artifact.section(types),
                self._boards(),
                surroundings(self.environment),
            ),
            what="Inspection",
            about=plural(len(self.layers), "layer"),
        )

    def _nested(self) -> Iterator[tuple[str, LayerInspection]]:
        for layer in self.layers:
            yield from layer.nested()

    def _ends(self) -> Iterator[Text]:
        if len(self.signatures) > 1:
            own, *others = self.signatures
            yield Text(spelled(f"signature '{own}'; the others: {', '.join(others)} ({name_of('signature')})"))
        yield from map(Text, self.notes)
        known = {tensor.name: tensor.text for tensor in self.tensors}
        for kind, ends in (("input", self.inputs), ("output", self.outputs)):
            yield from (Text(f"{kind} '{name}': {known.get(name, 'not described')}") for name in ends)

    def _layers(self) -> Table:
        tensors = {tensor.name: tensor.text for tensor in self.tensors}

        def described(number: str, ends: Sequence[str]) -> str:
            # the tensors of inner layers are not the network's
            return "\n".join(name if "." in number else tensors.get(name, name) for name in ends)

        return Table(
            self.name,
            (
                *numbers("#"),
                *names("layer"),
                Column("type", below="layer"),
                Column("inputs", spare=1),
                Column("outputs", spare=3),
                Column("parameters", spare=2),
                *numbers("MACs", "constants", bar=True),
            ),
            [
                (
                    number,
                    layer.name,
                    layer.type,
                    described(number, layer.inputs),
                    described(number, layer.outputs),
                    layer.settings,
                    layer.macs,
                    layer.constant_bytes,
                )
                for number, layer in self._nested()
            ],
            largest="MACs",
        )

    def _arena(self) -> Iterator[Text]:
        """Yield the arena of the firmware, or why there is none, and its bounds."""
        arena = self.arena
        own = f"the network's own activations, each layer in whole, without overlap: {self.whole_layers_bytes:,} B"
        if arena is None:
            why = self.arena_problem or "it was not generated"
            yield Text(f"none, since there is no firmware: {why}", "arena", items=(own,))
            return
        text = f"{arena.size_bytes:,} B on {arena.board} (goal {arena.goal}), {arena.certificate}"
        yield Text(text, "arena", items=(arena.bounds, own))
        if self.arena_problem:
            yield Text(self.arena_problem, "too large", State.BAD)
        if arena.state_bytes:
            yield Text(f"{arena.state_bytes:,} B that live from one run to the next", "state")

    def _planned(self) -> Iterator[Text]:
        """Yield the planned time of an inference if there is one."""
        if self.planned is not None:
            yield Text(self.planned.text, "planned time", items=self.planned.assumed)

    def _plan(self) -> Part | None:
        whose = "the network's own activations" if self.arena is None else f"the firmware for {self.arena.board}"
        plans = (Picture("memory", region, region.caption) for region in self.plan)
        return page_part("Memory over time", Text(f"The plan of {whose}."), *plans) if self.plan else None

    def _calls(self) -> Iterator[Part | None]:
        """Yield the calls of devices, and what becomes of the tensors that cross, if they were requested."""
        if self.schedule is not None:
            calls = [
                (
                    str(each.index),
                    each.layer,
                    runner(each.backend, each.device),
                    joined(*each.calls),
                    joined(*each.beside),
                )
                for each in self.schedule
            ]
            table = Table(
                "the firmware's operators in order, and the calls of devices",
                (*numbers("#"), *names("layer", "run by"), Column("calls", sparse=True), Column("beside", sparse=True)),
                calls,
            )
            copies = (Text(copy, f"layer '{each.layer}'") for each in self.schedule for copy in each.copies)
            yield part("Device calls", table, *copies)
        if self.crossings:
            rows = [
                (each.tensor, f"{each.writer} -> {each.reader}", each.bytes, each.alignment, each.became, each.why)
                for each in self.crossings
            ]
            yield part(
                "Crossings",
                Table(
                    "the tensors that cross between the core and devices",
                    (*names("tensor", "crossing"), "bytes", "aligned", "became", "why no better"),
                    rows,
                ),
            )

    def _kernels(self) -> Part | None:
        if self.kernels is None:
            return None
        timed = any(kernel.cycles is not None for layer in self.kernels for kernel in layer.kernels)
        table = Table(
            "the firmware's kernels: estimates of one inference",
            (
                *numbers("#"),
                *names("layer", "kernel"),
                *numbers("instructions"),
                *(numbers("cycles", "ms", spare=1) if timed else ()),
                *numbers("weights, B", spare=3),
                *numbers("scratch, B", spare=2),
                Column("overlap, B", spare=1),
                "why",
            ),
            [
                (
                    "" if number else str(index),
                    "" if number else layer.layer,
                    ("-> " if kernel.chosen else "   ") + kernel.kernel,
                    kernel.instructions,
                    *((kernel.cycles, kernel.duration) if timed else ()),
                    kernel.weight_bytes,
                    kernel.scratch_bytes,
                    "\n".join(each.text for each in layer.overlaps) if kernel.chosen else "",
                    kernel.reason,
                )
                for index, layer in enumerate(self.kernels)
                for number, kernel in enumerate(layer.kernels)
            ],
        )
        costly = [
            f"layer {index} '{each.layer}': {each.advice}" for index, each in enumerate(self.kernels) if each.advice
        ]
        found = (Text(plural(len(costly), "layer"), "costly", items=costly),) if costly else ()
        return part("Kernels", table, *found)

    def _boards(self) -> Part | None:
        if self.boards is None:
            return None
        table = board_table("the firmware's plan, without its code", self.boards)
        return part("Boards", table, *board_notes(self.boards))

    @override
    def __repr__(self) -> str:
        arena = "" if self.arena is None else f", arena {self.arena.size_bytes:,} B on {self.arena.board}"
        return (
            f"<Inspection {brief(self.name)}: {len(self.layers)} layers, {self.macs:,} MACs, "
            f"{self.constant_bytes:,} B of constants{arena}>"
        )

    def tensor(self, name: str) -> TensorPart:
        """Return a tensor by name; KeyError if there is none."""
        return {tensor.name: tensor for tensor in self.tensors}[name]
