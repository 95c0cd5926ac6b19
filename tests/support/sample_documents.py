# SPDX-License-Identifier: Apache-2.0
"""A document of every kind, with names of one's choice in all places where models and data put theirs."""

from __future__ import annotations

from dataclasses import replace

from ferrule.report.comparison_document import Change, ChangePart, Comparison, SidePart
from ferrule.report.document import (
    BuildPart,
    CountPart,
    DeviceCallPart,
    DevicePart,
    DeviceTracePart,
    DeviceWorkPart,
    DifferencePart,
    FlashPart,
    LayerPart,
    LayerRefusalsPart,
    MemoryPart,
    ModelPart,
    RamPart,
    ReportDocument,
    SamplePart,
    Verdict,
)
from ferrule.report.evaluation_document import (
    ConfusionPart,
    DataPart,
    EvaluationDocument,
    FloatPart,
    LabelPart,
    MetricPart,
    PathPart,
    ProofPart,
    WorstPart,
)
from ferrule.report.failure_document import CrashPart, FailureDocument, ProblemPart
from ferrule.report.inspection import (
    ArenaPart,
    DivisionPart,
    FinalLayerPart,
    FinalPart,
    Inspection,
    LayerInspection,
    RefusalPart,
    TakerPart,
    TensorPart,
)
from ferrule.report.picture import BufferPart, EnvironmentPart, RegionPlanPart
from ferrule.report.reading import Document
from ferrule.report.sweep_document import SweepDocument, SweepRow
from ferrule.report.timeline import timeline

WORK = DeviceWorkPart(read_bytes=12_345, written_bytes=678, busy=400)


def environment(name: str = "ferrule run kws.tflite") -> EnvironmentPart:
    """Return an environment with one command."""
    return EnvironmentPart(
        ferrule="0.0.0", python="3.11.0", platform="Linux x86_64", packages={"numpy": "2.0.0"}, commands=(name,)
    )


def run_document(name: str = "kws", layers: int = 4) -> ReportDocument:
    """Return the report of a run on the core and on a device, with every optional part."""
    parts = tuple(
        LayerPart(
            index=index,
            name=f"{index} {name}",
            type="CONV_2D",
            backend="Npu" if index % 2 else "CpuAcc",
            kernel="conv2d_s8",
            macs=1_000 * index,
            count=1_000 + index,
            share=1 / layers,
            constant_bytes=100 * index,
            scratch_bytes=0,
            device=name if index % 2 else "CpuAcc",
            work=WORK if index % 2 else None,
        )
        for index in range(layers)
    )
    buffers = tuple(
        BufferPart(
            name=f"{part.name}:out",
            kind=("input", "activation", "scratch", "state", "output")[part.index % 5],
            offset=1_000 * (part.index % 2),
            size_bytes=1_000,
            first=part.index,
            last=min(part.index + 1, layers - 1),
        )
        for part in parts
    )
    region = RegionPlanPart(
        name="sram",
        peak_bytes=2_000,
        bound_bytes=1_900,
        certificate="at most 5.3 % above the proved bound, search cut short",
        steps=tuple(part.name for part in parts),
        buffers=buffers,
    )
    return ReportDocument(
        ferrule_version="0.0.0",
        verdict=Verdict.DIFFERENT,
        engine="unicorn",
        input=f"{name}.npy",
        model=ModelPart(name=name, digest="00" * 32, macs=sum(part.macs for part in parts)),
        build=BuildPart(
            board="mps2-an386",
            cpu="cortex-m4",
            toolchain="zig",
            toolchain_version="zig 0.0.0",
            optimization="O3",
            build_s=1.25,
        ),
        count=CountPart(unit="instructions", resolution=1, source="dwt", per_inference=4_000_123, exact=True),
        layers=parts,
        memory=MemoryPart(
            flash=FlashPart(code=10_000, constants=2_000, weights=30_000, total=42_000),
            ram=RamPart(
                workspace=16_256,
                activations=16_000,
                activations_certificate="optimal",
                stack_used=500,
                stack_reserved=16_384,
                stack_bound=None,
                stack_bound_reason=f"a call through a pointer in {name}",
                link=1_060,
                fault_stack=256,
                other=84,
                total=34_040,
                state=16,
            ),
        ),
        run_s=0.5,
        samples=(
            SamplePart(index=0, verdict=Verdict.EXACT, max_difference=0.0),
            SamplePart(index=1, verdict=Verdict.DIFFERENT, max_difference=3.0),
        ),
        devices=(
            DevicePart(
                name=name,
                backend="Npu",
                activation_lead=0,
                memory_bytes=4_096,
                memory_used=1_234,
                layers=2,
                count=2_004,
                share=0.5,
                work=WORK,
                statistics={name: 17},
            ),
        ),
        device_trace=DeviceTracePart(
            calls=(DeviceCallPart(operator=1, layer=f"1 {name}", device=name, call="run", status=0),), as_planned=True
        ),
        faults=(f"{name}: flipped-data",),
        first_difference=DifferencePart(
            layer=f"1 {name}", type="CONV_2D", backend="Npu", device=name, tensor=f"{name}:out", max_difference=3.0
        ),
        plan=(region,),
        timeline=timeline(parts, [name], exact=True),
        refusals=tuple(LayerRefusalsPart(layer=part.name, reasons={"Npu": f"no {name}"}) for part in parts[::2]),
        environment=environment(f"ferrule run {name}"),
    )


def inspection(name: str = "kws") -> Inspection:
    """Return an inspection with a division among backends."""
    tensors = tuple(
        TensorPart(name=each, shape=(1, 4), dtype="int8", scales=(0.5,), zero_points=(3,), axis=None, constant=False)
        for each in (f"in {name}", f"out {name}")
    )
    return Inspection(
        name=name,
        inputs=(tensors[0].name,),
        outputs=(tensors[1].name,),
        tensors=tensors,
        layers=(
            LayerInspection(
                index=0,
                name=name,
                type="RESHAPE",
                parameters={"shape": f"({name},)"},
                inputs=(tensors[0].name,),
                outputs=(tensors[1].name,),
                macs=0,
                constant_bytes=0,
            ),
        ),
        macs=0,
        constant_bytes=0,
        arena=ArenaPart(activation_bytes=16, bound_bytes=16, certificate="optimal", order=(name,)),
        division=DivisionPart(
            backends=(),
            layers=(
                TakerPart(
                    layer=name,
                    backend="CpuAcc",
                    device=None,
                    refusals=(RefusalPart(backend="Npu", reason=f"no {name}"),),
                ),
            ),
            finals=(
                FinalPart(
                    face="firmware",
                    layers=(
                        FinalLayerPart(
                            layer=name, type="RESHAPE", backend="CpuAcc", device="CpuAcc", replaces=(), label=""
                        ),
                    ),
                    messages=(f"message on {name}",),
                ),
                FinalPart(face="host", problem=f"no backend runs {name}"),
            ),
        ),
        plan=run_document(name).plan,
        environment=environment(name),
    )


def evaluation(name: str = "kws", labels: int = 3) -> EvaluationDocument:
    """Return an evaluation with a proof on a board and a model in float32."""
    named = tuple(f"{index} {name}" for index in range(labels))
    accuracy = MetricPart(name=name, value=0.9, low=0.85, high=0.95, method="Wilson")
    return EvaluationDocument(
        ferrule_version="0.0.0",
        model=ModelPart(name=name, digest="00" * 32, macs=10),
        data=DataPart(source=name, form="npy", samples=12_345, digest="11" * 32, labels=name, preparation=(name,)),
        metrics=(accuracy, MetricPart(name="auc", value=None, note=f"no {name}")),
        paths=(PathPart(where=f"CpuAcc on {name}", samples=12_345, cpu_s=1.5, wall_s=2.5),),
        labels=tuple(LabelPart(label=label, samples=4, recall=0.5, precision=None) for label in named),
        confusion=ConfusionPart(
            labels=named, counts=tuple(tuple(3 if a == b else 1 for b in range(labels)) for a in range(labels))
        ),
        worst=(WorstPart(index=7, name=name, expected=named[0], predicted=named[1], score=1.5),),
        float_model=FloatPart(
            model=ModelPart(name=name, digest="22" * 32, macs=10),
            metrics=(accuracy,),
            agreement=0.99,
            largest_difference=0.1,
        ),
        proof=ProofPart(verdict=Verdict.EXACT, samples=(1, 2), seed=0, report=run_document(name)),
        environment=environment(name),
    )


def sweep(name: str = "kws", rows: int = 4) -> SweepDocument:
    """Return a sweep in which every fourth run has failed."""
    done = SweepRow(
        run="00",
        model=name,
        board=name,
        toolchain="zig",
        engine="unicorn",
        backends=(name,),
        options={name: name},
        status="done",
        verdict="exact",
        count=1_234_567,
        unit="instructions",
        flash_bytes=10_000,
        ram_bytes=2_000,
        metrics={name: 0.5},
    )
    failed = replace(done, status="failed", verdict="", error=f"no {name}", count=None, unit="", metrics={})
    return SweepDocument(
        ferrule_version="0.0.0",
        name=name,
        rows=tuple(replace(failed if index % 4 == 3 else done, run=f"{index:02x}") for index in range(rows)),
        planned=rows + 1,
        environment=environment(name),
    )


def failure(name: str = "kws") -> FailureDocument:
    """Return the document of a run that ended with a crash."""
    return FailureDocument(
        ferrule_version="0.0.0",
        command="run",
        error="EngineError",
        message=f"HardFault\nin {name}",
        hint=f"mend {name}",
        models=(name,),
        board="mps2-an386",
        engine="unicorn",
        faults=(f"{name}: bus-error",),
        crash=CrashPart(
            reason=f"HardFault in {name}",
            pc=0x2000_0360,
            symbol=f"{name}+0x24",
            instruction=f"ldr {name}",
            registers={"r0": 0xDEADBEEF},
            notes=(f"called from {name}",),
        ),
        problems=(ProblemPart(place=name, kind=name, reason=name, hint=name),),
        environment=environment(name),
    )


def comparison(name: str = "kws") -> Comparison:
    """Return a comparison in which the count of a layer has risen too much."""
    side = SidePart(model=name, board=name, ferrule="0.0.0", toolchain=name)
    return Comparison(
        ferrule_version="0.0.0",
        of="run",
        old=side,
        new=side,
        differences=(f"{name} differs",),
        changes=(
            ChangePart(scope="whole", counter="verdict", old=name, new=name, change=Change.EQUAL),
            ChangePart(
                scope="layer",
                place=name,
                counter="instructions",
                old=1_000,
                new=1_100,
                relative=0.1,
                change=Change.WORSE,
                limit="1%",
                failed=True,
                note=f"was {name}",
            ),
        ),
        environment=environment(name),
    )


def documents(name: str = "kws") -> dict[str, Document]:
    """Return a document of every kind."""
    return {
        each.kind: each
        for each in (
            run_document(name),
            inspection(name),
            evaluation(name),
            sweep(name),
            failure(name),
            comparison(name),
        )
    }
