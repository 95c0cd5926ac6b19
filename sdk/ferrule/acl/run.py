# SPDX-License-Identifier: Apache-2.0
"""Builds the class of a project, runs it, and reports how its tensors compare with the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.acl.comparison import TensorComparison, bounded_reference, compare_tensors, overall
from ferrule.acl.program import ON_NEON, build_program
from ferrule.acl.project import ArtifactProject
from ferrule.acl.toolchain import AclToolchain, find_toolchain
from ferrule.codegen.acl import VERSIONS, ArtifactRecord, acl_target
from ferrule.documents import json_text
from ferrule.errors import FerruleError
from ferrule.graph import Array
from ferrule.interface import either, name_of
from ferrule.network.execution import by_name
from ferrule.network.samples import pattern_sample, split
from ferrule.progress import Progress, Step, say_nothing
from ferrule.report.console import print_section
from ferrule.report.document import Verdict
from ferrule.report.sections import Align, Cell, Column, Conclusion, Part, Table, Text, names, numbers, share

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA_VERSION = 2


@frozen
class LayerTime:
    """The time that a layer took on this machine."""

    layer: str
    microseconds: float


@frozen
class ArtifactReport:
    """The results of a run of a generated class."""

    schema_version: int
    artifact: str
    target: str
    acl: str
    """The version of the library with which it ran."""
    ran: str
    """What ran, and what that does not show."""
    emulated: bool
    stepwise: bool
    """Whether each layer got the reference's values as inputs; otherwise the differences of layers add up."""
    input: str
    verdict: Verdict
    first_difference: TensorComparison | None
    tensors: tuple[TensorComparison, ...]
    """The named tensors that layers wrote, in their order."""
    times: tuple[LayerTime, ...] = ()

    @override
    def __repr__(self) -> str:
        return f"<ArtifactReport {self.artifact} for {self.target}: {self.verdict}, {len(self.tensors)} tensors>"

    def to_json(self) -> str:
        """Return the report as indented JSON."""
        return json_text(self)


def run_artifact(
    project: ArtifactProject,
    inputs: Sequence[Array] | Mapping[str, Array] | None = None,
    *,
    sysroot: Path | None = None,
    stepwise: bool = True,
    profile: bool = False,
    source: str = "",
    progress: Progress = say_nothing,
) -> ArtifactReport:
    """Build and run the class of a project once, and compare each tensor with the numpy reference.

    Args:
        project: the project, as `load_artifact` returns it.
        inputs: one array per input, in order or by name; by default the fixed pattern.
        sysroot: see `find_toolchain`.
        stepwise: whether each layer gets the reference's values as inputs.
        profile: whether to measure the time of each layer; not possible by emulation.
        source: describes the inputs in the report.
        progress: is told what is being done.

    Raises:
        MissingToolError: a compiler, library or emulator is missing.
        FerruleError: the class is for a newer version of the library, an array does not fit, or a profile is wanted by
            emulation.
        ProgramError: the compiler or the program failed.
    """
    record, toolchain = project.record, find_toolchain(sysroot)
    _check_version(record, toolchain)
    if profile and toolchain.emulated:
        raise FerruleError(
            "a profile cannot be measured by emulation: the times of an emulator say nothing about a processor or GPU",
            hint="copy the project's folder to the arm64 machine, and run the command there",
        )
    network = project.network()
    samples = [pattern_sample(network.inputs)] if inputs is None else split(network.inputs, inputs)
    if len(samples) != 1:
        raise FerruleError(f"the inputs are {len(samples)} samples, expected one")
    arrays = by_name("the network", network.inputs, samples[0])
    shim = acl_target(record.target).mapped and not toolchain.opencl
    progress(Step(phase=f"building {record.artifact}"))
    program = build_program([record], project.folder, [project.folder], toolchain, prelude=ON_NEON if shim else "")
    progress(Step(phase="computing the reference"))
    expected = bounded_reference(network, record, arrays, stepwise=stepwise)
    values = {name: each.values for name, each in expected.items()}
    progress(Step(phase=f"running {record.artifact}"))
    found = program.run(record.artifact, arrays, replacements=values if stepwise else None)
    compared = compare_tensors(network, record, found, expected)
    times = program.profile(record.artifact, arrays) if profile else {}
    return ArtifactReport(
        schema_version=SCHEMA_VERSION,
        artifact=record.artifact,
        target=record.target,
        acl=toolchain.version,
        ran=_ran(record, toolchain, shim=shim),
        emulated=toolchain.emulated,
        stepwise=stepwise,
        input=source or ("pattern" if inputs is None else "arrays"),
        verdict=overall(compared),
        first_difference=next((each for each in compared if each.verdict is Verdict.DIFFERENT), None),
        tensors=compared,
        times=tuple(LayerTime(layer=layer, microseconds=time) for layer, time in times.items()),
    )


def print_artifact_report(report: ArtifactReport, console: Console) -> None:
    """Print the table of tensors, what ran, and the verdict."""
    times = {time.layer: time.microseconds for time in report.times}
    tensors = Table(
        f"{report.artifact} for {report.target}, with the Arm Compute Library {report.acl}",
        (
            *numbers("#"),
            *names("layer"),
            Column("type", drop=1),
            "tensor",
            *numbers("difference"),
            Column("of its bound", Align.NUMBER, drop=2),
            *numbers("outside"),
            *names("verdict"),
            Column("us", Align.NUMBER, sparse=True),
        ),
        [
            (
                str(number),
                each.layer,
                each.type,
                each.tensor,
                _extent(each),
                share(each.share),
                f"{each.outside:,} of {each.elements:,}" if each.outside else "",
                Cell(each.verdict.words, each.verdict.state),
                f"{times[each.layer]:,.0f}" if each.layer in times else "",
            )
            for number, each in enumerate(report.tensors)
        ],
    )
    inputs = "the reference's inputs" if report.stepwise else "the outputs of the layers before it"
    total, first = sum(times.values()), report.first_difference
    measured = Text(f"{total:,.0f} us per inference, waiting after each layer", "measured on this machine")
    different = None
    if first is not None:
        place = f"layer '{first.layer}' ({first.type}), tensor '{first.tensor}', {_extent(first)}"
        different = Text(place, "first difference")
    sections = (
        tensors,
        Text(report.ran, "ran"),
        Text(f"each layer got {inputs}; input: {report.input}"),
        measured if times else None,
        different,
        Conclusion(report.verdict.words, report.verdict.state, ""),
    )
    print_section(Part(report.artifact, sections), console)


def _extent(each: TensorComparison) -> str:
    value = each.difference
    if value is None:
        return "not finite"
    if each.dtype.startswith("float"):
        return f"{value:.1e}" if value else "0"
    return f"{value:g} step{'' if value == 1 else 's'}"


def _check_version(record: ArtifactRecord, toolchain: AclToolchain) -> None:
    order = {version: number for number, version in enumerate(VERSIONS)}
    if toolchain.version in order and order[toolchain.version] < order[record.acl]:
        raise FerruleError(
            f"the class {record.artifact} is for version {record.acl} of the Arm Compute Library, "
            f"and {toolchain.version} was found",
            hint=f"give {name_of('sysroot')} with a newer one, or generate the class with "
            + either(f"--acl-version {toolchain.version}", f'AclOptions(version="{toolchain.version}")'),
        )


def _ran(record: ArtifactRecord, toolchain: AclToolchain, *, shim: bool) -> str:
    where = "under qemu-aarch64" if toolchain.emulated else "on this machine"
    if shim:
        return f"CL source on NEON {where}, by cl_on_neon.h: not CL's numerics, padding or kernels"
    side = "CL" if acl_target(record.target).mapped else "NEON"
    return f"{side} {where}" + (": the library's arithmetic, no time" if toolchain.emulated else "")
