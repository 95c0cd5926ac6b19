# SPDX-License-Identifier: Apache-2.0
"""A document of every kind, built by hand, in which any text can take the place of all names."""

from __future__ import annotations

from dataclasses import replace

from ferrule.backends.optimization_views import EstimatedMemory
from ferrule.firmware.arena import ArenaPart
from ferrule.report.base import Document
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
    SamplePart,
    Verdict,
)
from ferrule.report.estimates import EstimatePart
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
from ferrule.report.evidence import Evidence
from ferrule.report.failure_document import CrashPart, FailureDocument, ProblemPart
from ferrule.report.inspection import Inspection
from ferrule.report.inspection_parts import (
    BackendPart,
    DivisionPart,
    FinalLayerPart,
    FinalPart,
    LayerInspection,
    RefusalPart,
    TakerPart,
    TensorPart,
)
from ferrule.report.islands import FloatIslandPart
from ferrule.report.losses import LossPart
from ferrule.report.picture import BufferPart, EnvironmentPart, RegionPlanPart, SpanPart
from ferrule.report.quantization_document import EqualisationPart, FloatLayerPart, QuantizationDocument
from ferrule.report.run_document import ReportDocument
from ferrule.report.search_document import BlockPart, ResultPart, SearchDocument, TrialPart
from ferrule.report.sweep_document import SweepDocument, SweepRow

SAMPLE = Evidence(samples=1, elements=10, numbers=10)
MEMORY = MemoryPart(
    flash=FlashPart(code=10_000, constants=2_000, weights=30_000, total=42_000),
    ram=RamPart(
        workspace=16_256,
        stack_used=500,
        stack_reserved=16_384,
        stack_bound=640,
        stack_bound_reason="",
        link=1_060,
        fault_stack=256,
        other=84,
        total=34_040,
    ),
    arena=ArenaPart(
        board="mps2-an386",
        goal="balanced",
        size_bytes=16_256,
        certificate="optimal",
        bound_bytes=16_256,
        activation_bytes=16_000,
        activation_certificate="optimal",
    ),
)


def environment(text: str = "") -> EnvironmentPart:
    """Return an environment with the commands that made a document."""
    command = f"ferrule run '{text}'" if text else "ferrule run kws.tflite --json run.json"
    return EnvironmentPart(
        ferrule="0.1.0",
        python="3.11.7",
        platform="Linux x86_64",
        packages={"numpy": "2.4.6", text or "unicorn": "2.1.4"},
        commands=(command,),
    )


def estimate(text: str = "") -> EstimatePart:
    """Return what a compiler expects of a layer that replaced two others."""
    return EstimatePart(
        source=text or "Acme 1.0 for [large]",
        cycles=2_000,
        clock_hz=100_000_000,
        layers={text or "first": 1_500, f"{text} second" if text else "second": 500},
        memories=(EstimatedMemory(name=text or "SRAM", cycles=70, read_bytes=4_097, written_bytes=12),),
        warnings=(text or "slow [memory]",),
    )


def run_document(text: str = "", *, verdict: Verdict = Verdict.EXACT) -> ReportDocument:
    """Return the report of a model of two layers, one of them on a device; `text` replaces names, and is unchanged."""
    conv, dense = text or "conv_2d_0", f"{text} 2" if text else "fully_connected_1"
    device = text or "npu0"
    different = verdict is Verdict.DIFFERENT
    return ReportDocument(
        ferrule_version="0.1.0",
        verdict=verdict,
        engine=text or "unicorn",
        input=text or "pattern",
        model=ModelPart(name=text or "kws.v1", digest="4c" * 32, macs=2_656_768, file=text or "models/kws.tflite"),
        build=BuildPart(
            board=text or "mps2-an386",
            cpu="cortex-m4",
            toolchain=text or "zig",
            toolchain_version=text or "zig 0.17.0",
            optimization="Os",
            build_s=1.25,
        ),
        count=CountPart(unit="instructions", resolution=1, source="dwt", per_inference=400, exact=True),
        layers=(
            LayerPart(
                index=0,
                name=conv,
                type="CONV_2D",
                backend=text or "Npu",
                kernel=text or "conv2d_s8",
                macs=2_000_000,
                count=300,
                share=0.75,
                constant_bytes=1000,
                scratch_bytes=256,
                device=device,
                work=DeviceWorkPart(read_bytes=4096, written_bytes=128, busy=250),
                outputs=(text or "conv/Relu;bias",),
                estimate=estimate(text),
            ),
            LayerPart(
                index=1,
                name=dense,
                type="FULLY_CONNECTED",
                backend="CpuAcc",
                kernel="fully_connected_s8",
                macs=656_768,
                count=100,
                share=0.25,
                constant_bytes=960,
                scratch_bytes=0,
                beside=(conv,),
                inputs=(text or "conv/Relu;bias",),
                outputs=(f"{text} out" if text else "Identity",),
            ),
        ),
        memory=MEMORY,
        run_s=0.5,
        samples=(
            SamplePart(index=0, verdict=Verdict.EXACT, max_difference=0.0, evidence=SAMPLE),
            SamplePart(index=1, verdict=verdict, max_difference=3.0 if different else 0.0, evidence=SAMPLE),
        ),
        evidence=Evidence(samples=2, elements=20, numbers=20, layers=2),
        devices=(
            DevicePart(
                name=device,
                backend=text or "Npu",
                activation_lead=0,
                memory_bytes=65_536,
                memory_used=4_096,
                layers=1,
                count=300,
                share=0.75,
                estimated=True,
            ),
        ),
        device_trace=DeviceTracePart(
            calls=(DeviceCallPart(operator=0, layer=conv, device=device, call="run", status=0),),
            as_planned=not different,
        ),
        faults=(f"{device}: never-done",) if different else (),
        first_difference=DifferencePart(layer=conv, type="CONV_2D", backend="Npu", tensor=text or "conv/Relu;bias")
        if different
        else None,
        plan=(
            RegionPlanPart(
                name=text or "sram",
                peak_bytes=16_256,
                bound_bytes=16_256,
                certificate="optimal",
                steps=(conv, dense),
                buffers=(
                    BufferPart(name=text or "input", kind="input", offset=0, size_bytes=8_000, first=0, last=0),
                    BufferPart(name=f"{text} a", kind="activation", offset=8_000, size_bytes=8_256, first=0, last=1),
                ),
            ),
        ),
        timeline=(
            SpanPart(track="core", layer=conv, start=0, end=300),
            SpanPart(track=device, layer=conv, start=50, end=300, exact=False),
            SpanPart(track="core", layer=dense, start=300, end=400),
        ),
        refusals=(LayerRefusalsPart(layer=dense, reasons={text or "Npu": text or "its weights are too large"}),),
        islands=(
            FloatIslandPart(
                layers=(dense,),
                place="between integers",
                instructions=None,
                cycles=80,
                milliseconds=0.01,
                ram_bytes=128,
                reasons=(text or "SIN has no integer kernel",),
                advice=text or "nothing but another operator in the model",
            ),
        ),
        environment=environment(text),
    )


def _tensor(name: str, shape: tuple[int, ...]) -> TensorPart:
    return TensorPart(name=name, shape=shape, dtype="int8", scales=(0.5,), zero_points=(3,), axis=None, constant=False)


def _division(text: str) -> DivisionPart:
    layer, backend = text or "while_0", text or "Npu"
    refusal = RefusalPart(backend=backend, reason=f"{backend} has no WHILE")
    final = FinalLayerPart(
        layer=layer,
        type="WHILE",
        backend="CpuAcc",
        device="CpuAcc",
        replaces=(layer,),
        label=layer,
        estimate=estimate(text),
    )
    return DivisionPart(
        backends=(BackendPart(id=backend, host=True, firmware=True),),
        layers=(TakerPart(layer=layer, backend="CpuAcc", device=None, refusals=(refusal,)),),
        finals=(
            FinalPart(face="host", problem=f"no backend runs {layer}"),
            FinalPart(face="firmware", layers=(final,), messages=(f"{layer} stays on the core",)),
        ),
    )


def inspection_document(text: str = "") -> Inspection:
    """Return the inspection of a model with a layer that runs another graph."""
    inner = LayerInspection(
        index=0,
        name=f"body/{text or 'add_0'}",
        type="ADD",
        parameters={},
        inputs=("a",),
        outputs=(f"{text} b",),
        macs=0,
        constant_bytes=4,
    )
    return Inspection(
        name=text or "kws",
        inputs=(text or "input",),
        outputs=(f"{text} out",),
        tensors=(
            _tensor(text or "input", (1, 49)),
            _tensor(f"{text} out", ()),
        ),
        layers=(
            LayerInspection(
                index=0,
                name=text or "while_0",
                type="WHILE",
                parameters={"limit": text or "3"},
                inputs=(text or "input",),
                outputs=(f"{text} out",),
                macs=1_000,
                constant_bytes=40,
                inner=(inner,),
            ),
        ),
        macs=1_000,
        constant_bytes=44,
        whole_layers_bytes=16_500,
        arena=replace(MEMORY.arena, board=text or "mps2-an386", state_bytes=8),
        division=_division(text),
        plan=run_document(text).plan,
        environment=environment(text),
    )


def evaluation_document(text: str = "", *, accuracy: float = 0.9, proof: bool = True) -> EvaluationDocument:
    """Return an evaluation of 100 samples with two labels, and a metric that is undefined."""
    labels = (text or "yes", f"{text} no")
    metric = MetricPart(
        name="accuracy", value=accuracy, low=accuracy - 0.05, high=accuracy + 0.04, method="Wilson", note=text
    )
    report = run_document(text)
    return EvaluationDocument(
        ferrule_version="0.1.0",
        model=report.model,
        data=DataPart(
            source=text or "data/", form="images", samples=100, digest="ab" * 32, labels="folders", preparation=(text,)
        ),
        metrics=(metric, MetricPart(name=text or "auc", value=None, note=text or "there is one label only")),
        paths=(PathPart(where=text or "CpuAcc on the host", samples=100, cpu_s=0.5, wall_s=0.25),),
        labels=tuple(LabelPart(label=label, samples=50, recall=0.9, precision=None) for label in labels),
        confusion=ConfusionPart(labels=labels, counts=((45, 5), (5, 45))),
        worst=(WorstPart(index=7, name=text or "yes/7.png", expected=labels[0], predicted=labels[1], score=0.75),),
        float_model=FloatPart(model=report.model, metrics=(metric,), agreement=0.98, largest_difference=0.125),
        proof=ProofPart(verdict=Verdict.EXACT, evidence=report.evidence, samples=(0, 5), seed=0, report=report)
        if proof
        else None,
        evidence=Evidence(samples=100, elements=1_000, numbers=1_000),
        environment=environment(text),
    )


def sweep_document(text: str = "") -> SweepDocument:
    """Return a sweep of which one run is done, one differs, one has failed and one is missing."""
    row = SweepRow(
        run="aa",
        model=text or "kws.tflite",
        board=text or "mps2-an386",
        toolchain="zig",
        engine="unicorn",
        backends=("CpuAcc", text or "Npu"),
        options={text or "goal": text or "speed"},
        status="done",
        verdict="exact",
        evidence=Evidence(samples=1, elements=10, numbers=10, layers=3, runs=1),
        count=400,
        unit="instructions",
        flash_bytes=42_000,
        ram_bytes=34_040,
        stack_bytes=500,
        metrics={text or "accuracy": 0.5},
        seconds=1.5,
    )
    error = text or "EngineError: the firmware hung\nat 0x1000"
    return SweepDocument(
        ferrule_version="0.1.0",
        name=text or "nightly",
        rows=(
            row,
            replace(row, run="bb", engine="qemu", verdict="different"),
            replace(row, run="cc", engine="renode", status="failed", error=error, verdict="", count=None, metrics={}),
        ),
        planned=4,
        environment=environment(text),
    )


def quantization_document(text: str = "") -> QuantizationDocument:
    """Return a quantisation of an input and two layers, one of which stays in float32."""
    layer = text or "conv_2d_0"
    loss = LossPart(
        name=text or "input",
        type="input",
        tensor=text or "x",
        dtype="int8",
        rms=1.0,
        error=0.01,
        own_error=0.01,
        saturated=0.0,
        unused=0.25,
    )
    return QuantizationDocument(
        ferrule_version="0.1.0",
        model=run_document(text).model,
        data=evaluation_document(text).data,
        scheme="int8",
        io="int8",
        ranges=text or "minmax",
        equalisation=EqualisationPart(channels=8, layers=1, taken=False, noise=0.03, without=0.02),
        keep=(text or "SOFTMAX",),
        layers=2,
        float_bytes=4_000,
        integer_bytes=1_000,
        floats=(FloatLayerPart(name=layer, type="SOFTMAX", reason=text or "it is kept in float32"),),
        compared=16,
        losses=(loss, replace(loss, name=layer, type="CONV_2D", error=0.5, own_error=None, saturated=0.02)),
        environment=environment(text),
    )


def search_document(text: str = "", *, chosen: bool = True) -> SearchDocument:
    """Return a search of four trials: two on the front, one dominated, and one over the budget."""
    evaluation = evaluation_document(text)
    trials = (
        TrialPart(setting=("int8", "int8"), metric=0.8, noise=0.2, flash=20_000, ram=9_000, ms=5.0, front=True),
        TrialPart(setting=("int16", "int8"), metric=0.9, noise=0.1, flash=30_000, ram=9_500, ms=8.0, front=True),
        TrialPart(setting=("int8", "int16"), metric=0.7, noise=0.3, flash=31_000, ram=9_600, ms=8.5),
        TrialPart(setting=("float", "float"), metric=0.95, flash=90_000, ram=30_000, exceeds=("flash",), front=True),
    )
    return SearchDocument(
        ferrule_version="0.1.0",
        model=evaluation.model,
        data=evaluation.data,
        board=text or "mps2-an386",
        budget={"flash": 40_000, "ms": 10.0},
        metric="accuracy",
        seed=0,
        chosen_by=50,
        reported_on=50,
        blocks=tuple(
            BlockPart(layers=(text or f"layer {index}",), chosen=name if chosen else "")
            for index, name in enumerate(trials[1].setting)
        ),
        trials=trials,
        results=(
            ResultPart(what="float", metric=0.95, low=0.9, high=0.98),
            ResultPart(what="chosen", metric=0.9, low=0.85, high=0.94, noise=0.1),
        )
        if chosen
        else (),
        measured={"flash": 36_000, "ms": 9.0} if chosen else {},
        proof=evaluation if chosen else None,
        environment=environment(text),
    )


def comparison_document(text: str = "") -> Comparison:
    """Return a comparison with a change of every kind, one of them over its limit."""
    layer = text or "conv_2d_0"

    def count(old: int | None, new: int | None, change: Change, place: str = "") -> ChangePart:
        scope = "layer" if place else "whole"
        return ChangePart(scope=scope, place=place, counter="instructions", old=old, new=new, change=change)

    worse = replace(count(400, 440, Change.WORSE), relative=0.1, limit="1%", failed=True)
    return Comparison(
        ferrule_version="0.1.0",
        of="run",
        old=SidePart(model=text or "kws", board=text or "mps2-an386", ferrule="0.1.0"),
        new=SidePart(
            model=text or "kws", file=text or "kws.tflite", board="mps2-an386", toolchain=text, ferrule="0.1.0"
        ),
        limits={"": "1%"},
        differences=(text or "The compiler differs: a, now b.",),
        changes=(
            ChangePart(scope="whole", counter="verdict", old="exact", new="exact", change=Change.EQUAL),
            worse,
            count(200, 100, Change.BETTER, layer),
            count(None, 100, Change.ADDED, f"{text} new"),
            count(100, None, Change.REMOVED, f"{text} old"),
            ChangePart(scope="whole", counter="MACs", old=1, new=2, change=Change.OTHER, note=text or "was 'x'"),
        ),
        environment=environment(text),
    )


def failure_document(text: str = "") -> FailureDocument:
    """Return a run that crashed."""
    return FailureDocument(
        ferrule_version="0.1.0",
        command="run",
        error="EngineError",
        message=text or "the firmware faulted\nat 0x0000_1000",
        hint=text or "docs/emulation.md explains faults",
        models=(text or "models/kws.tflite",),
        board=text or "mps2-an386",
        engine=text or "unicorn",
        faults=(text,),
        crash=CrashPart(reason=text or "hard fault", pc=0x1000, symbol=text or "main+4", registers={"r0": 1}),
        environment=environment(text),
    )


def refused_document(text: str = "") -> FailureDocument:
    """Return a model that was refused for two problems."""
    problem = ProblemPart(place=text or "operator 3 RNN", type="RNN", reason=text or "unroll it", hint=text)
    return replace(failure_document(text), crash=None, problems=(problem, replace(problem, place=f"{text} other")))


def documents(text: str = "") -> dict[str, Document]:
    """Return a document of every kind, and of every outcome, by name."""
    return {
        "run": run_document(text),
        "different run": run_document(text, verdict=Verdict.DIFFERENT),
        "inspection": inspection_document(text),
        "evaluation": evaluation_document(text),
        "evaluation without a board": evaluation_document(text, proof=False),
        "sweep": sweep_document(text),
        "quantization": quantization_document(text),
        "search": search_document(text),
        "search without a choice": search_document(text, chosen=False),
        "comparison": comparison_document(text),
        "failure": failure_document(text),
        "refusal": refused_document(text),
    }
