# SPDX-License-Identifier: Apache-2.0
"""The report of a run: its data, written by `--json`, and what it shows. Its JSON Schema is generated from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.graph import Rounding, brief
from ferrule.interface import option, spelled
from ferrule.link import CounterSource, status_text
from ferrule.report.base import Case, Document, Measure, Outcome, Row, Rule, Suite, flat
from ferrule.report.document import (
    BuildPart,
    ContractPart,
    CountPart,
    DevicePart,
    DeviceTracePart,
    DifferencePart,
    LayerPart,
    LayerRefusalsPart,
    MemoryPart,
    ModelPart,
    OwnershipPart,
    ReferencePart,
    SamplePart,
    Verdict,
    extent,
    reasons_table,
    took_text,
)
from ferrule.report.duration import NOT_TIMED, DurationPart
from ferrule.report.estimates import Estimates, distinct_estimates, estimate_rows, estimates_part
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.hot_spots import hot_spots
from ferrule.report.islands import FloatIslandPart, islands_section
from ferrule.report.picture import Assigned, EnvironmentPart, RegionPlanPart, SpanPart, Timeline, surroundings
from ferrule.report.sections import (
    Align,
    Column,
    Conclusion,
    Fact,
    Facts,
    Only,
    Part,
    Picture,
    Section,
    Strip,
    Table,
    Text,
    group_colours,
    joined,
    names,
    numbers,
    page_part,
    part,
    plural,
    share,
)

SCHEMA_VERSION = 4
"""Incremented when a field changes its meaning or is removed, but not for new fields."""
_SAMPLES_LISTED = 10
_LISTED = 5
"""The costly layers that are listed."""


@frozen
class ReportDocument(Document):
    """All results of one `ferrule run`."""

    kind: str = "run"
    schema_version: int = SCHEMA_VERSION
    ferrule_version: str
    verdict: Verdict
    engine: str
    input: str
    """The origin of the inputs: "pattern" or the files."""
    model: ModelPart
    build: BuildPart
    count: CountPart
    layers: tuple[LayerPart, ...]
    memory: MemoryPart
    run_s: float
    """Wall-clock seconds of the engine, including transfers."""
    samples: tuple[SamplePart, ...]
    duration: DurationPart = NOT_TIMED
    """How long an inference took; empty in a document of an older version."""
    evidence: Evidence = NO_EVIDENCE
    """What the verdict rests on, over all samples; empty in a document of an older version."""
    devices: tuple[DevicePart, ...] = ()
    device_trace: DeviceTracePart | None = None
    """None unless it was requested."""
    faults: tuple[str, ...] = ()
    """The faults injected into device models, each with its device."""
    self_test: str = ""
    """The result of the firmware's self-test at start-up: "equal" or "not_recorded"; empty if it has none."""
    ownership: OwnershipPart | None = None
    """None unless the check was requested."""
    contract: ContractPart | None = None
    """None for a firmware without devices."""
    first_difference: DifferencePart | None = None
    """None unless it was requested and the run differs from the reference."""
    plan: tuple[RegionPlanPart, ...] = ()
    """The memory plan of each region of the workspace."""
    reference: ReferencePart | None = None
    """What its floats were compared with; None for a network without floats."""
    timeline: tuple[SpanPart, ...] = ()
    """What the core and the devices worked on, in the order of the starts."""
    refusals: tuple[LayerRefusalsPart, ...] = ()
    """The layers of the network that some backend of the job refused, with the reasons."""
    islands: tuple[FloatIslandPart, ...] = ()
    """The parts of the firmware that compute in float32 although other layers compute with integers."""
    environment: EnvironmentPart | None = None

    @override
    def measures(self) -> Iterator[Measure]:
        yield Measure("verdict", self.verdict.value)
        unit, counted = self.count.unit, self.count.per_inference
        if counted:
            yield Measure(unit, counted)
        yield from self.duration.measures()
        flash, ram, arena = self.memory.flash, self.memory.ram, self.memory.arena
        sizes = {
            **({} if flash is None else {"flash": flash.total, "code": flash.code, "weights": flash.weights}),
            "RAM": ram.total,
            "workspace": ram.workspace,
            "arena": arena.size_bytes,
            "activations": arena.activation_bytes,
            "stack": ram.stack_used,
            "stack bound": ram.stack_bound,
        }
        yield from (Measure(counter, size, unit="B") for counter, size in sizes.items())
        yield Measure("MACs", self.model.macs, better="")
        for layer in self.layers:
            found = Measure(unit, layer.count) if counted else Measure("MACs", layer.macs, better="")
            yield replace(found, scope="layer", place=layer.name, kind=layer.type)

    @override
    def table_rows(self) -> Iterator[Row]:
        place: Row = {"model": self.model.name, "board": self.build.board, "engine": self.engine}
        times = {each.layer: flat(each, layer="", start="") for each in self.duration.layers}
        for layer in self.layers:
            yield {
                **place,
                "row": "layer",
                **flat(layer, name="layer", work="", estimate="", inputs=""),
                "unit": self.count.unit,
                "copies": "; ".join(layer.copies),
                **times.get(layer.name, {}),
                **({} if layer.work is None else flat(layer.work, exact="")),
            }
        yield from estimate_rows(place, self.estimates)

    @override
    def suite(self) -> Suite:
        flash, ram = self.memory.flash, self.memory.ram
        return Suite(
            name=f"{self.model.name} on {self.build.board} by {self.engine}",
            command="run",
            model=self.model.name,
            file=self.model.file,
            cases=(*map(self._case, self.samples), *self.device_call_cases(), *self.duration.cases(self.place)),
            properties={
                "verdict": self.verdict.value,
                "compared": self.evidence.text,
                "model digest": self.model.digest,
                "board": self.build.board,
                "engine": self.engine,
                "toolchain": self.build.toolchain_version,
                self.count.unit: self.count.per_inference,
                **self.duration.properties(),
                "flash bytes": None if flash is None else flash.total,
                "RAM bytes": ram.total,
                "stack bytes": ram.stack_used,
                "ferrule": self.ferrule_version,
            },
            seconds=self.run_s,
        )

    @property
    def place(self) -> str:
        """What tells its findings from those of the same model elsewhere."""
        return f"{self.build.board} {self.engine}"

    def _case(self, sample: SamplePart) -> Case:
        case = Case(f"sample {sample.index}", seconds=self.run_s / len(self.samples), where=self.place)
        if sample.verdict is Verdict.NOTHING_COMPARED:
            outcome = Outcome.SKIPPED if self.verdict.agrees else Outcome.FAILURE
            return replace(case, outcome=outcome, rule=Rule.NOTHING_COMPARED, text=sample.evidence.nothing)
        if sample.verdict.agrees:
            return replace(case, text=f"{sample.verdict.words} ({sample.evidence.text})")
        text = f"the outputs differ from the numpy reference{extent(sample.max_difference)}"
        first = self.first_difference
        if first is not None:
            case = replace(case, layer=first.layer)
            text += f"\nfirst difference: {first.text}"
        return case.failing(Rule.DIFFERENT, text)

    def device_call_cases(self) -> Iterator[Case]:
        """Yield the case of the calls of devices, if they were recorded."""
        if self.device_trace is not None:
            case = Case("device calls", where=self.place)
            text = "the calls of devices are not those that the generator scheduled"
            yield case if self.device_trace.as_planned else case.failing(Rule.DEVICE_CALLS, text)

    @override
    def sections(self) -> Part:
        cpu = f" ({self.build.cpu})" if self.build.cpu else ""
        copies = (Text(copy, f"layer '{layer.name}'") for layer in self.layers for copy in layer.copies)
        return Part(
            self.model.name,
            (
                part("Layers", self._layers(), *copies),
                islands_section(self.islands),
                self._devices(),
                part("Elapsed time", *self.duration.sections()),
                estimates_part(self.estimates),
                self._trace(),
                Facts(tuple(self._totals()), large=True),
                *self._remarks(),
                *self.duration.conclusions(),
                *(each.conclusion() for each in self.noted()),
                self._conclusion(),
                page_part("Memory", *self._memory()),
                *self._explained(),
            ),
            what="Run",
            about=f"on {self.build.board}{cpu} by {self.engine}",
        )

    def _conclusion(self) -> Conclusion:
        samples = plural(len(self.samples), "sample")
        wrong = sum(not sample.verdict.agrees for sample in self.samples)
        sentence = {
            Verdict.EXACT: f"All outputs of {samples} equal the numpy reference bit for bit.",
            Verdict.WITHIN_BOUND: f"All outputs of {samples} are within the bounds of float32 of the numpy reference.",
            Verdict.NOTHING_COMPARED: f"There is no verdict: {self.evidence.text}.",
            Verdict.DIFFERENT: f"{wrong:,} of {samples} differ{'s' * (wrong == 1)} from the numpy reference.",
        }[self.verdict]
        return Conclusion(self.verdict.words, self.verdict.state, sentence)

    def noted(self) -> tuple[DevicePart, ...]:
        """Return the devices whose notes are a conclusion: all with notes but those that are late, which is one."""
        late = {each.device for each in self.duration.waits if each.limited}
        return tuple(each for each in self.devices if each.notes and each.name not in late)

    def _layers(self) -> Table:
        ruled = any(layer.rounding != Rounding.TFLM for layer in self.layers)
        counted = Only.TERMINAL if self.count.source == CounterSource.NONE else None
        unit = self.count.unit
        return Table(
            f"{self.model.name} on {self.build.board} by {self.engine}",
            (
                *numbers("#"),
                *names("layer"),
                Column("type", drop=3),
                Column("rounding", sparse=True),
                *names("backend"),
                Column("kernel", drop=1, below="type"),
                Column("MACs", Align.NUMBER, bar=True, drop=2),
                *numbers(unit, only=counted, bar=True),
                *numbers("share", only=counted),
                Column("of best", sparse=True, drop=2),
                Column("weights, B", Align.NUMBER, Only.PAGES, bar=True, drop=1),
                Column("beside", sparse=True),
            ),
            [
                (
                    str(layer.index),
                    layer.name,
                    layer.type,
                    layer.rounding if ruled else "",
                    layer.runner,
                    layer.kernel,
                    layer.macs,
                    layer.count,
                    share(layer.share),
                    f"{layer.count / layer.bound:.1f} x" if layer.advice and layer.bound else "",
                    layer.constant_bytes,
                    joined(*layer.beside),
                )
                for layer in self.layers
            ],
            largest="MACs" if counted else unit,
            groups=[layer.runner for layer in self.layers],
        )

    def _devices(self) -> Part | None:
        """Return the transfers and the time of device models by layer, if any are known."""
        unit = self.count.unit
        worked = [(layer, layer.work) for layer in self.layers if layer.work is not None]
        exactness = "exact" if all(work.exact for _, work in worked) else "measured"
        guesses = [device.name for device in self.devices if device.estimated]
        if guesses:
            exactness += f", with estimates of the time that {', '.join(guesses)} would take"
        table = Table(
            f"what the devices' models did ({exactness})",
            (*numbers("#"), *names("layer", "device"), *numbers("bytes read", "bytes written", f"{unit} at work")),
            [
                (str(layer.index), layer.name, layer.runner, work.read_bytes, work.written_bytes, work.busy)
                for layer, work in worked
            ],
        )
        about = Text(f"{table.title[0].upper()}{table.title[1:]}.", only=Only.PAGES)
        return Part("Devices", (about, table)) if worked else None

    def _trace(self) -> Part | None:
        trace, label = self.device_trace, "device calls"
        if trace is None:
            return None
        if not trace.calls:
            return part("Device calls", Text("none, no layer runs on a device", label))
        calls = Table(
            label,
            (*numbers("#"), *names("layer", "device", "call"), "status"),
            [
                (
                    str(call.operator),
                    call.layer,
                    call.device,
                    call.call,
                    status_text(call.status) if call.status else "ok",
                )
                for call in trace.calls
            ],
        )
        return part("Device calls", calls, Text("as planned" if trace.as_planned else "NOT as planned", label))

    def _totals(self) -> Iterator[Fact]:
        unit = self.count.unit
        yield self.count.fact(self.model.macs)
        yield from self.duration.facts()
        yield from self.memory.facts()
        yield from (device.fact(unit) for device in self.devices)
        if self.devices:
            devices = {(device.backend, device.name) for device in self.devices}
            own = [layer for layer in self.layers if (layer.backend, layer.device) not in devices]
            yield Fact("core", took_text(len(own), sum(x.count for x in own), sum(x.share for x in own), unit))
        yield Fact("built", self.build.text)
        yield Fact("ran", f"in {self.run_s:.1f} s", f", {len(self.samples)} sample(s), input: {self.input}")

    def _remarks(self) -> Iterator[Text]:
        """Yield what is worth knowing about the run besides its figures, in sentences."""
        different = [each for each in self.samples if each.verdict is Verdict.DIFFERENT]
        items = [f"sample {each.index} differs{extent(each.max_difference)}" for each in different]
        if len(items) > _SAMPLES_LISTED:
            items[_SAMPLES_LISTED:] = [f"and {len(items) - _SAMPLES_LISTED} more"]
        if len(self.samples) > 1 or items:
            agree = sum(sample.verdict.agrees for sample in self.samples)
            yield Text(f"{agree} of {len(self.samples)} agree with the reference", "samples", items=items)
        yield from self._costly()
        if self.self_test:
            yield Text(self.self_test.replace("_", " "), "self-test at start-up")
        if self.ownership is not None:
            yield Text(self.ownership.text, "ownership")
        if self.contract is not None and self.contract.unchecked:
            yield Text(f"not checked, since {self.contract.unchecked}", "contract of the devices")
        yield from self.duration.remarks()
        noted = self.noted()
        for device in self.devices:
            yield from device.remarks(only=Only.TERMINAL if device in noted else None)
        yield from (Text(fault, "injected") for fault in self.faults)
        if self.first_difference is not None:
            yield Text(self.first_difference.text, "first difference")
        elif self.verdict is Verdict.DIFFERENT and self.engine != "serial":
            yield Text(spelled(f"a run with {option('locate')} names the first layer that differs"))
        yield Text(self.evidence.text, "compared")
        if self.reference is not None:
            yield Text(f"compared with {self.reference.text}", "floats")

    def _costly(self) -> Iterator[Text]:
        """Yield the layers that take much more instructions than the best kernels known, the worst first."""
        costly = sorted(
            (layer for layer in self.layers if layer.advice), key=lambda each: (each.bound or 0) - each.count
        )
        if costly:
            items = [
                f"layer {each.index} '{each.name}', {share(each.share)}: {each.advice}" for each in costly[:_LISTED]
            ]
            if len(costly) > _LISTED:
                items.append(f"and {len(costly) - _LISTED} more")
            wasted = sum(each.count - (each.bound or 0) for each in costly) / max(
                sum(each.count for each in self.layers), 1
            )
            yield Text(
                f"{plural(len(costly), 'layer')}; the best kernels known would save {share(wasted)}",
                "costly",
                items=items,
            )

    def _memory(self) -> Iterator[Section]:
        flash, ram = self.memory.flash, self.memory.ram
        if flash is not None:
            sizes = {"code": flash.code, "constants": flash.constants, "weights": flash.weights}
            yield Picture("strip", Strip("Flash", sizes))
        if ram.total is not None:
            parts = {
                "workspace": ram.workspace,
                "stack, reserved": ram.stack_reserved,
                "link": ram.link,
                "fault stack": ram.fault_stack,
                "other": ram.other,
            }
            yield Picture("strip", Strip("RAM", {name: size or 0 for name, size in parts.items()}))

    def _explained(self) -> Iterator[Part | None]:
        """Yield the parts that only pages show: the plan, the division among backends, the timeline, and the build."""
        plan = (Picture("memory", region, region.caption) for region in self.plan)
        yield page_part("Where time and memory go", *hot_spots(self))
        yield page_part("Memory over time", *plan)
        layers = [Assigned(layer.name, layer.runner, layer.share) for layer in self.layers]
        refusals = [(each.layer, backend, reason) for each in self.refusals for backend, reason in each.reasons.items()]
        why = reasons_table(refusals) if refusals else Text("No backend refused a layer.")
        yield page_part("Division among backends", Picture("lanes", layers), why)
        if self.timeline:
            colours = group_colours([layer.runner for layer in self.layers])
            by_layer = {key: colours[layer.runner] for layer in self.layers for key in (layer.device, layer.name)}
            drawn = Picture("timeline", Timeline(self.timeline, by_layer, self.count.unit))
            yield page_part("Timeline of one inference", drawn)
        build = self.build
        made = {
            "multiply-accumulates": f"{self.model.macs:,}",
            "platform": build.platform,
            "compiler": build.compiler,
            "flags": build.flags,
            "model digest": self.model.digest,
            "plan digest": build.plan,
            "sources digest": build.sources,
        }
        yield page_part("Model and build", Facts.known(made))
        yield surroundings(self.environment)

    @property
    def estimates(self) -> Estimates:
        """What compilers expect of pre-compiled layers, with the layers' names."""
        return distinct_estimates((layer.name, layer.estimate) for layer in self.layers)

    @override
    def __repr__(self) -> str:
        flash, ram = self.memory.flash, self.memory.ram.total
        sizes = "" if flash is None or ram is None else f", flash {flash.total:,} B, RAM {ram:,} B"
        plural = "" if len(self.samples) == 1 else "s"
        return (
            f"<{type(self).__name__} {brief(self.model.name)} on {self.build.board} by {self.engine}: {self.verdict}, "
            f"{len(self.samples)} sample{plural}, {self.count.per_inference:,} {self.count.unit} per inference{sizes}>"
        )


def json_schema() -> dict[str, object]:
    """Return the JSON Schema of the report."""
    from ferrule.documents import schema_of

    return schema_of(ReportDocument)
