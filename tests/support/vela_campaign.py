# SPDX-License-Identifier: Apache-2.0
"""Random networks of one operator through Vela and the model of Ethos-U, compared with the numpy kernels.

python tests/support/vela_campaign.py [--count N] [--configurations ethos-u55-128 ...] [--kinds conv ...] [--samples N]
    [--options drawn | default | memory_mode=Sram_Only,optimise=Size ...]

Random networks of several operators, divided between EthosU and the core, each on one of the configurations:

python tests/support/vela_campaign.py --networks N [--first SEED] [--results FILE]
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from amounts import amount
from oracle import edge_inputs
from vela_cases import KINDS, vela_case
from vela_divided import Row, run_networks
from vela_legacy import ARGUMENT as LEGACY
from vela_legacy import legacy_explanation, legacy_hazard, tensor_names, written_stream
from vela_options import DRAWN, OptionRow, drawn, row

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.compiled import CompiledStream, StreamTensor, read_npz
from ferrule.backends.ethos_u.dense import with_convolutions
from ferrule.backends.ethos_u.errors import NpuBusError, StreamError
from ferrule.backends.ethos_u.known_differences import BY_ONE, known_reason
from ferrule.backends.ethos_u.standalone import EthosUStream
from ferrule.errors import FerruleError, InputError
from ferrule.formats import to_tflite
from ferrule.graph import Array, DataType, LayerType
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case

EXACT = "exact"
HAZARDS = "exact, and the model reports a hazard"
DIFFERENT = "DIFFERENT"
SAMPLE = "sample"
"""The kind of the networks that are drawn by the operators' own samples."""
_RUNS = 2
_REASON = re.compile(r"Reason: (.+)")
_REFUSALS = re.compile(r"RawWriter expects|could not run on NPU")


class RefusedError(Exception):
    """Vela puts the network, or a part of it, on the CPU; the text is its reason."""


@frozen
class Case:
    """The arguments of a network: a kind of `vela_cases`, or a layer type and an element type."""

    kind: str
    seed: int
    type: LayerType | None = None
    dtype: DataType = DataType.INT8

    def network(self) -> Network:
        """Return the network; FerruleError if the operator does not support what was drawn."""
        if self.type is None:
            return vela_case(self.kind, self.seed)
        graph = layer_case(self.type, self.dtype, self.seed)
        network = network_of(graph)
        network.validate()
        return network

    @property
    def label(self) -> str:
        """The row of the table that counts the case."""
        return self.kind if self.type is None else f"{self.type} {self.dtype}"


@dataclass(slots=True)
class Report:
    """What a campaign found: by configuration and label, and by the row of options, the cases for each result."""

    results: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    rows: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failures: list[str] = field(default_factory=list)

    def total(self, configuration: str) -> Counter[str]:
        """Return the number of cases for each result; refusals count as one."""
        counted: Counter[str] = Counter()
        for (name, _), results in self.results.items():
            if name == configuration:
                counted.update(results)
        return counted


def compile_in_process(model: bytes, configuration: str, *options: str) -> bytes:
    """Return Vela's raw file for a model; RefusedError if a part of it is for the CPU.

    Vela takes a second to start and a hundredth to compile a small network, so campaigns call it in their process.
    """
    with tempfile.TemporaryDirectory() as folder:
        _run_vela(Path(folder), model, configuration, *options)
        return Path(folder, "m_vela.npz").read_bytes()


def compiled_stream(network: Network, configuration: str, *options: str) -> CompiledStream:
    """Return the stream of a network, which goes to Vela in the form in which the backend gives it one.

    Raises:
        RefusedError: a part of it is for the CPU.
    """
    model = to_tflite(with_convolutions(network))
    if LEGACY not in options:
        return read_npz(compile_in_process(model, configuration, *options))
    with tempfile.TemporaryDirectory() as folder, tensor_names() as names:
        try:
            _run_vela(Path(folder), model, configuration, *options)
        except (TypeError, KeyError, IndexError, AttributeError, AssertionError) as error:
            raise RefusedError(f"Vela's older code generator ends with {type(error).__name__}") from error
        if names.on_the_core or not names.outputs:
            left = ", ".join(dict.fromkeys(names.on_the_core)) or "nothing else"
            raise RefusedError(f"Vela's older code generator leaves {left} to the core")
        return written_stream(Path(folder), names, network)


def _run_vela(folder: Path, model: bytes, configuration: str, *options: str) -> None:
    """Run Vela for a model; RefusedError if it says that a part is for the CPU."""
    # It keeps the standard output of its import, which may be one that a test of pytest closes.
    with redirect_stdout(sys.__stdout__):
        from ethosu.vela.vela import main

    source, output = folder / "m.tflite", folder / "printed"
    source.write_bytes(model)
    arguments = [str(source), "--accelerator-config", configuration, "--output-format", "raw"]
    try:
        with _printing_to(output):
            main([*arguments, "--output-dir", str(folder), *options])
    except RuntimeError as error:
        if not _REFUSALS.search(str(error)):
            raise
        reasons = dict.fromkeys(_REASON.findall(output.read_text(encoding="utf-8", errors="replace")))
        raise RefusedError("; ".join(reasons) or str(error).strip()) from None


@contextmanager
def _printing_to(path: Path) -> Iterator[None]:
    """Send what Python and C++ print to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    with path.open("wb") as file, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            yield
        finally:
            for number, old in zip((1, 2), kept, strict=True):
                os.dup2(old, number)
                os.close(old)


def valid_network(case: Case) -> Network | None:
    """Return a case's network; None if its operator does not support what was drawn, or no file can hold it."""
    try:
        network = case.network()
        to_tflite(network)
    except FerruleError:
        if case.type is None:
            raise
        return None
    return network


def check(network: Network, seed: int, configuration: str, *options: str) -> str:
    """Compile and run a network and return `EXACT`, `HAZARDS`, why it differs, or "CPU: " and Vela's reason.

    AssertionError: the outputs differ and nothing explains it.
    """
    is_legacy = LEGACY in options
    try:
        compiled = compiled_stream(network, configuration, *options)
    except RefusedError as refusal:
        return f"CPU: {refusal}"
    if is_legacy and network.states:
        return legacy_explanation(network, options)
    stream = EthosUStream(compiled, check_hazards=True)
    result = EXACT
    for inputs in _sequences(network, seed):
        try:
            found, expected, hazardous = _run(stream, network, inputs)
        except (StreamError, NpuBusError, InputError):
            if not (reason := _known(network, options)):
                raise
            return reason
        if not _equal(found, expected):
            result = _explanation(network, found, expected, options)
        elif hazardous and result == EXACT:
            result = (legacy_hazard(network) if is_legacy else "") or HAZARDS
    return result


def _sequences(network: Network, seed: int) -> list[list[list[Array]]]:
    """Return sequences of inputs; a network without state has sequences of one run."""
    random = [random_inputs(network, seed + index) for index in range(_RUNS)]
    return [random] if network.states else [[each] for each in (*random, *edge_inputs(network).values())]


def _run(
    stream: EthosUStream, network: Network, inputs: Sequence[Sequence[Array]]
) -> tuple[list[list[Array]], list[list[Array]], bool]:
    """Return what the NPU computed, what the network computes, and whether the model reported a hazard."""
    initial = {tensor.name: state.initial for tensor, state in zip(stream.states, network.states, strict=True)}
    stream.reset(initial)
    found: list[list[Array]] = []
    expected: list[list[Array]] = []
    hazardous = False
    state = network.initial_state()
    for each in inputs:
        run = stream.run([_shaped(array, tensor) for array, tensor in zip(each, stream.inputs, strict=True)])
        hazardous = hazardous or bool(run.hazards)
        found.append(
            [
                array.reshape(info.shape).view(info.dtype.numpy)
                for array, info in zip(run.outputs.values(), network.outputs, strict=True)
            ]
        )
        expected.append(network.run(each, state=state))
    return found, expected, hazardous


def _shaped(array: Array, tensor: StreamTensor) -> Array:
    """Return an input in the shape that Vela gives it; only sizes matter to the backend."""
    return array.reshape(tensor.shape) if array.nbytes == tensor.size_bytes else array


def _equal(left: Sequence[Sequence[Array]], right: Sequence[Sequence[Array]]) -> bool:
    return all(np.array_equal(a, b) for x, y in zip(left, right, strict=True) for a, b in zip(x, y, strict=True))


def _explanation(
    network: Network, found: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]], options: Sequence[str]
) -> str:
    """Return why outputs differ; AssertionError unless the backend refuses the layer for that reason."""
    reason = _known(network, options)
    pairs = [(a, b) for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True)]
    most = max(int(np.abs(a.astype(np.int64) - b.astype(np.int64)).max()) for a, b in pairs)
    if reason and (most <= 1 or not reason.endswith(BY_ONE)):
        return reason
    count = sum(int((a != b).sum()) for a, b in pairs)
    raise AssertionError(f"{count} of {sum(a.size for a, _ in pairs)} values differ, by up to {most}: {reason}")


def _known(network: Network, options: Sequence[str]) -> str:
    """Return why the backend refuses a layer of the network that Vela compiles; "" if it refuses none.

    Of the older code generator, which the backend never uses, also return what that one does otherwise.
    """
    reasons = [known_reason(network, layer) for layer in network.layers]
    return next(filter(None, reasons), legacy_explanation(network, options) if LEGACY in options else "")


def cases(kinds: Sequence[str], count: int, samples: int, first: int = 0) -> Iterator[Case]:
    """Yield `count` cases of each kind, and `samples` of each operator in int8 and int16."""
    for seed in range(first, first + count):
        yield from (Case(kind=kind, seed=seed) for kind in kinds)
    for seed in range(first, first + samples):
        for dtype in (DataType.INT8, DataType.INT16):
            yield from (Case(kind=SAMPLE, seed=seed, type=type_, dtype=dtype) for type_ in LAYER_TYPES)


def run_campaign(
    listed: Sequence[Case], configurations: Sequence[str], *options: str, rows: Sequence[str] = ()
) -> Report:
    """Run all cases on all configurations; cases that are no valid networks are left out.

    `rows` are texts as `vela_options.row` reads them, each for all cases, or `DRAWN` for one that each case draws.
    """
    report = Report()
    for case in listed:
        network = valid_network(case)
        for configuration in configurations if network is not None else ():
            assert network is not None
            for text in rows or ("",):
                chosen = _chosen(text, case, configuration)
                arguments = chosen.arguments(configuration) if chosen else ()
                try:
                    result = check(network, case.seed, configuration, *arguments, *options)
                except (AssertionError, FerruleError) as error:
                    report.failures.append(f"{configuration} {chosen or ''} {case}: {type(error).__name__}: {error}")
                    result = DIFFERENT
                report.results[configuration, case.label][result] += 1
                report.rows[str(chosen or "Vela's own")][result] += 1
    return report


def _chosen(text: str, case: Case, configuration: str) -> OptionRow | None:
    """Return the row of options for a case; None for none, so that Vela takes its own."""
    if text == DRAWN:
        return drawn(case.label, case.seed, configuration)
    return row(text) if text else None


def print_report(report: Report) -> None:
    """Print tables with a row for each kind and each row of options, and the totals of each configuration."""
    for (configuration, label), results in sorted(report.results.items()):
        text = ", ".join(f"{number} {what}" for what, number in results.most_common())
        print(f"{configuration:14} {label:40} {text}")
    for name, results in sorted(report.rows.items()):
        print(f"options {name}: {_totals(results)}")
    for configuration in sorted({name for name, _ in report.results}):
        print(f"{configuration}: {_totals(report.total(configuration))}")


def _totals(results: Counter[str]) -> str:
    on_cpu = sum(number for what, number in results.items() if what.startswith("CPU: "))
    compared = results.total() - on_cpu
    exact = results[EXACT] + results[HAZARDS]
    explained = compared - exact - results[DIFFERENT]
    return (
        f"{results.total()} cases, {on_cpu} on the CPU, {compared} compared: {exact} exact "
        f"({results[HAZARDS]} with hazards), {explained} explained, {results[DIFFERENT]} different"
    )


def print_rows(rows: Iterable[Row]) -> None:
    """Print the counts of each configuration and of all, and what failed."""
    counts: dict[str, Counter[str]] = {}
    for each in (listed := list(rows)):
        for name in (each.configuration, "all"):
            count = counts.setdefault(name, Counter())
            count["networks"] += 1
            count["with a stream"] += bool(each.streams)
            count["exact"] += not each.failure
            count["different"] += bool(each.failure)
            count.update(f"refused: {kind}" for kind in each.found)
    for name, count in sorted(counts.items()):
        print(f"{name}: " + ", ".join(f"{number} {what}" for what, number in count.items()))
    for each in listed:
        if each.failure:
            print(f"DIFFERENT: network {each.seed} on {each.configuration}: {each.failure}")


def main() -> int:
    """Run a campaign from the command line; exit code 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=amount, default=10, help="networks of each kind")
    parser.add_argument("--samples", type=amount, default=2, help="samples of each operator and type")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--configurations", nargs="*", default=["ethos-u55-128"])
    parser.add_argument("--option", action="append", default=[], help="a further option of Vela, as --option=--x=y")
    parser.add_argument("--options", nargs="*", default=[], help=f"rows of options, or '{DRAWN}' for one of each case")
    parser.add_argument("--networks", type=amount, help="networks of several operators, in place of all else")
    parser.add_argument("--results", type=Path, help="the file of rows with which --networks goes on")
    options = parser.parse_args()
    if options.networks is not None:
        found = run_networks(range(options.first, options.first + options.networks), results=options.results)
        print_rows(found)
        return int(not found or any(each.failure for each in found))
    listed = list(cases(options.kinds, options.count, options.samples, options.first))
    report = run_campaign(listed, options.configurations, *options.option, rows=options.options)
    print_report(report)
    for failure in report.failures:
        print(f"DIFFERENT: {failure}")
    return int(bool(report.failures))


if __name__ == "__main__":
    sys.exit(main())
