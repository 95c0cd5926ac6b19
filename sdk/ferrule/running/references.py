# SPDX-License-Identifier: Apache-2.0
"""What the outputs of a firmware, or of the host, are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ferrule.errors import FerruleError
from ferrule.firmware import BuiltFirmware
from ferrule.link import BuildInfo
from ferrule.network import Network
from ferrule.network.bounds import initial_bounded, run_bounded
from ferrule.network.samples import Sample
from ferrule.report import ReportDocument, Verdict
from ferrule.report.base import part_of
from ferrule.report.document import BoundPart, ReferencePart
from ferrule.report.verdicts import Expected
from ferrule.running.own_code import OwnCode, has_floats

Begun = tuple[Sample, bool]
"""A sample, and whether it begins with the initial state instead of what the one before has left."""
_State = TypeVar("_State")
_Result = TypeVar("_Result")
_OWN_PLATFORMS = ("bare-metal", "cmsis", "freertos", "threadx", "zephyr")
"""Those whose builds compile without contraction; a library is built by its user, with flags of another choice."""
_OWN_COMPILERS = ("GCC", "Clang", "clang")
"""As they name themselves; they keep to IEEE 754 unless a flag says otherwise."""


class References:
    """What each sample of one firmware is compared with.

    Without floats, that is the numpy reference. With floats, it is the firmware's own C on this machine, bit for bit;
    this C is compared with the numpy reference within bounds, layer by layer of the network as it was given.
    """

    def __init__(self, firmware: BuiltFirmware, build: BuildInfo | None) -> None:
        """`build` is what the firmware that runs states of itself."""
        self._network, self._floats = firmware.network, has_floats(firmware.network)
        self._strict = has_own_flags(build)
        self._own: OwnCode | None = None
        self._reason = ""
        self._widest: float | None = None
        if self._floats:
            try:
                self._own = OwnCode(firmware.optimized, firmware.job.backend_source(), network=firmware.network)
            except FerruleError as error:
                self._reason = str(error)

    def of(self, samples: Sequence[Begun]) -> Iterator[Expected]:
        """Yield what is expected for each sample, with the state of the one before."""
        network, own = self._network, self._own
        found = () if own is None else _in_order(samples, network.initial_state, own.run)
        if not self._floats:
            yield from _in_order(
                samples,
                network.initial_state,
                lambda sample, state: Expected(network.run(sample, state=state)),
            )
        elif own is None:
            yield from self._bounded(samples)
        elif self._strict:
            yield from (Expected(each, own=each, strict=True) for each in found)
        else:
            given = self._bounded(samples)
            yield from (replace(each, own=other) for each, other in zip(given, found, strict=True))

    def _bounded(self, samples: Sequence[Begun]) -> Iterator[Expected]:
        for expected in bounded_references(self._network, samples):
            errors = [each.error[np.isfinite(each.error)] for each in expected.bounded if each.error is not None]
            self._widest = max([self._widest or 0.0, *(float(error.max(initial=0.0)) for error in errors)])
            yield expected

    def noted(self, document: ReportDocument) -> ReportDocument:
        """Return the report of a run with what its floats were compared with; DIFFERENT if the C left its bounds."""
        if not self._floats:
            return document
        if self._own is None:
            return replace(document, reference=ReferencePart(reason=self._reason, widest=self._widest))
        found = self._own.judged
        bound = part_of(BoundPart, found, layers=len(found.layers))
        verdict = Verdict.DIFFERENT if bound.outside else document.verdict
        return replace(
            document, verdict=verdict, reference=ReferencePart(bits=self._strict, bound=bound, widest=self._widest)
        )


def has_own_flags(build: BuildInfo | None) -> bool:
    """Return whether a firmware states a build of Ferrule's, whose floats have the bits of its C anywhere."""
    return (
        build is not None
        and build.platform.startswith(_OWN_PLATFORMS)
        and build.compiler.startswith(_OWN_COMPILERS)
        and "fast" not in build.flags
    )


def bounded_references(network: Network, samples: Iterable[Begun]) -> Iterator[Expected]:
    """Yield what numpy computes for each sample, with the state of the one before, and the bounds of other code."""
    return _in_order(
        samples,
        lambda: initial_bounded(network),
        lambda sample, state: Expected.of(run_bounded(network, sample, state)),
    )


def _in_order(
    samples: Iterable[Begun],
    initial: Callable[[], _State],
    run: Callable[[Sample, _State], _Result],
) -> Iterator[_Result]:
    """Yield the result of each sample, which changes the state that the next one has unless that begins anew."""
    state = initial()
    for sample, begin in samples:
        state = initial() if begin else state
        yield run(sample, state)
