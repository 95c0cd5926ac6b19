# SPDX-License-Identifier: Apache-2.0
"""Compares the fast path with a board and with the numpy reference."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ferrule.evaluation.data import DataSet
from ferrule.evaluation.on_board import beginnings, cpu_s, drawn_for_proof, processes, run_all
from ferrule.evaluation.predictions import Predictions, by_sample
from ferrule.evaluation.request import EvaluationRequest
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.network.samples import Sample, split
from ferrule.report.document import Verdict
from ferrule.report.elapsed import judged, waits_note
from ferrule.report.evaluation_document import PathPart, ProofPart
from ferrule.report.evidence import Evidence, evidence_of
from ferrule.report.verdicts import compare, worst
from ferrule.running import Firmware
from ferrule.running.own_code import has_floats
from ferrule.running.references import bounded_references
from ferrule.running.run import run

_LISTED = 20


def prove(
    firmware: Firmware, request: EvaluationRequest, data: DataSet, predictions: Predictions
) -> tuple[ProofPart, PathPart]:
    """Run samples drawn with a seed on the board; compare them with the host's predictions and the numpy reference."""
    network = firmware.network
    chosen = drawn_for_proof(data, request.proof, request.seed, stateful=bool(network.states))
    before_s, started = cpu_s(), time.perf_counter()
    inputs = data.take(chosen).inputs
    begins = beginnings(data, chosen)
    report = run(firmware, inputs, replace(request.run, source=data.part.source, reset_each=begins))
    path = PathPart(
        where=f"{firmware.board.name} by {request.run.engine}, and numpy",
        samples=len(chosen),
        cpu_s=cpu_s() - before_s,
        wall_s=time.perf_counter() - started,
    )
    runs = by_sample(network, report.outputs, len(chosen))
    hosts = by_sample(network, predictions.outputs, predictions.samples, chosen)
    equal = _compared(network, hosts, runs, split(network.inputs, inputs), begins)
    verdicts = [worst([verdict, sample.verdict]) for verdict, sample in zip(equal, report.samples, strict=True)]
    part = ProofPart(
        verdict=worst(verdicts),
        evidence=report.document.evidence,
        samples=chosen,
        seed=request.seed,
        report=report.document,
        different=_different(chosen, verdicts),
    )
    return part, path


def all_on_board(
    firmware: Firmware, request: EvaluationRequest, data: DataSet, predictions: Predictions, part: ProofPart
) -> tuple[Predictions, ProofPart]:
    """Run all samples on the board; return its predictions, and the proof with their comparison with the host's."""
    network, started = firmware.network, time.perf_counter()
    ran = run_all(firmware, request.run, data, request.jobs)
    used = processes(data, request.jobs)
    many = f" in {used} processes" if used > 1 else ""
    path = PathPart(
        where=f"{firmware.board.name} by {request.run.engine}{many}",
        samples=len(data),
        cpu_s=ran.cpu_s,
        wall_s=time.perf_counter() - started,
    )
    board = replace(predictions, outputs=ran.outputs, path=path)
    hosts, boards = (by_sample(network, each.outputs, each.samples) for each in (predictions, board))
    every = range(predictions.samples)
    samples = (sample for index in every for sample in split(network.inputs, data.take([index]).inputs))
    verdicts = _compared(network, hosts, boards, samples, beginnings(data, every))
    different = sorted({*part.different, *_different(every, verdicts)})[:_LISTED]
    verdict = worst([part.verdict, *verdicts])
    evidence = sum(map(evidence_of, boards, hosts), Evidence(layers=part.evidence.layers))
    report = part.report
    if ran.longest is not None:
        duration = judged(report.duration, request.run.questions, ran.longest)
        report = replace(report, duration=replace(duration, note=waits_note(ran.data_waits) or duration.note))
    part = replace(part, report=report)
    return board, replace(part, verdict=verdict, evidence=evidence, different=tuple(different), whole=True)


def _compared(
    network: Network,
    hosts: Sequence[list[Array]],
    boards: Sequence[list[Array]],
    samples: Iterable[Sample],
    begins: Sequence[bool],
) -> list[Verdict]:
    """Return how host and board compare: equal, both within the bounds of the reference, or not."""
    verdicts = [compare(host, board)[0] for host, board in zip(hosts, boards, strict=True)]
    if all(verdict is Verdict.EXACT for verdict in verdicts) or not has_floats(network):
        return verdicts
    expected = bounded_references(network, zip(samples, begins, strict=True))
    return [
        verdict if verdict is Verdict.EXACT else worst(compare(each, wanted.outputs, wanted.bounds)[0] for each in pair)
        for verdict, wanted, *pair in zip(verdicts, expected, hosts, boards, strict=True)
    ]


def _different(places: Sequence[int], verdicts: list[Verdict]) -> tuple[int, ...]:
    found = [place for place, verdict in zip(places, verdicts, strict=True) if verdict is Verdict.DIFFERENT]
    return tuple(found[:_LISTED])
