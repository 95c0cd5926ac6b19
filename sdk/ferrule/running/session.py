# SPDX-License-Identifier: Apache-2.0
"""A firmware that stays on an engine and answers samples one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.devices import Fault
from ferrule.emulation import EngineError, Machine, OwnershipPlan, Session
from ferrule.emulation.attached import attached_devices, attached_wires, failures, inject
from ferrule.emulation.contract import contract_plan
from ferrule.emulation.durations import duration_plan
from ferrule.firmware import BuiltFirmware, platform
from ferrule.graph import Array
from ferrule.link import DirectTensors, LinkSession, LinkTimeoutError, RunFailedError
from ferrule.network import Network
from ferrule.network.samples import Sample
from ferrule.report.tracing import explained
from ferrule.running import claims
from ferrule.running.request import RunRequest
from ferrule.timing import DataWaits, Duration


class RunningFirmware(Closing):
    """A firmware on an engine, started once for many samples; it compares nothing. For use by one thread."""

    def __init__(
        self, firmware: BuiltFirmware, request: RunRequest | None = None, *, ownership: OwnershipPlan | None = None
    ) -> None:
        """Start the firmware on the request's engine; `ownership` is the plan of its workspace, to be checked.

        Raises:
            FerruleError: as `Firmware.run` does.
        """
        request = request or RunRequest()
        self.firmware = firmware
        engine = request.engine_for(firmware.board, firmware.program)
        self.machine = replace(
            linked_machine(firmware, request.faults),
            options=request.options,
            ownership=ownership,
            callback_s=request.timeout_s,
            clock=request.clock_for(firmware.board, engine),
        )
        with ExitStack() as stack:
            self.session = stack.enter_context(engine.start(self.machine))
            with self.explaining():
                self.link = connect(firmware, self.session, self.machine, request.timeout_s)
            inject(self.machine.devices, request.faults)
            self.session.durations()  # of the run that the firmware makes before it answers
            self._stack = stack.pop_all()
        self.took: Duration | None = None
        """The time of the last inference of `run`; None if the engine cannot tell."""
        self.longest: int | None = None
        """The most time that an inference of `run` took, in units of the clock; None if the engine cannot tell."""
        self.data_waits: Counter[DataWaits] = Counter()
        """The number of inferences of `run` by where their waits for data come from."""

    @property
    def network(self) -> Network:
        """The network that the firmware runs."""
        return self.firmware.network

    def run(self, sample: Sample, *, reset: bool = False) -> list[Array]:
        """Return the outputs for one sample; with `reset`, a model with state begins with its initial one.

        Raises:
            InputError: an input has the wrong dtype or shape.
            EngineError: the firmware faulted or hung.
            RunFailedError: a device or an operator failed; the message names the layer.
        """
        with self.explaining():
            result = self.link.run(sample, reset=reset and bool(self.network.states))
        self.took = next(iter(self.session.durations() or ()), None)
        if self.took is not None:
            self.longest = max(self.took.total, self.longest or 0)
            self.data_waits[self.took.data_waits] += 1
        return list(result.outputs)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Name the layer in a RunFailedError of the block, and turn a time-out into an EngineError with a report."""
        try:
            yield
        except RunFailedError as error:
            raise explained(error, self.firmware.artifact, failures(self.machine.devices)) from error
        except LinkTimeoutError as error:
            report = self.session.crash_report(str(error))
            raise EngineError(str(error), hint=error.hint, report=report) from error

    @override
    def close(self) -> None:
        """Stop the engine; a second call does nothing."""
        self._stack.close()


def linked_machine(firmware: BuiltFirmware, faults: Mapping[str, Fault]) -> Machine:
    """Return the board with its link on the UART that the firmware uses for it, and with models of its devices.

    Those in `faults` can be given a fault by `inject`.
    """
    board, program, chosen = firmware.board, firmware.program, platform(firmware.project.manifest.platform)
    return Machine(
        board=replace(board, link_uart=chosen.link_uart(program, board)),
        elf=firmware.image.path,
        devices=attached_devices(firmware.artifact, firmware.image, faults, program=program),
        wires=attached_wires(program),
        contract=contract_plan(program, firmware.image),
        durations=duration_plan(program, firmware.image),
    )


def connect(firmware: BuiltFirmware, session: Session, machine: Machine, timeout_s: float) -> LinkSession:
    """Return the link to a firmware that runs; FerruleError if it is another one.

    Inputs and outputs bypass the link where the engine reaches the firmware's memory. They do not where ownership is
    checked: the core must write inputs to its data cache and read outputs through it, or no missing maintenance of
    these is found.
    """
    link = LinkSession(session.channel(), run_timeout_s=timeout_s, start_timeout_s=timeout_s)
    claims.choose_model(firmware, link)
    claims.self_test(firmware, link)
    claims.check_claims(firmware, link.model_info(), link.build_info())
    if not (machine.options.through_link or machine.ownership):
        memory, model = session.memory(), f"ferrule_{firmware.artifact.symbol}_link_model"
        if memory is not None and firmware.image.has(model):
            link.use_direct(DirectTensors.of(memory, firmware.image.address_of(model)))
    return link
