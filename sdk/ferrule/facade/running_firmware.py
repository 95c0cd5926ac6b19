# SPDX-License-Identifier: Apache-2.0
"""A firmware that stays on an engine and answers samples one by one."""

from __future__ import annotations

from contextlib import ExitStack

from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.emulation import EngineError, EngineOptions, Machine, fitting_engine
from ferrule.emulation.attached import attached_devices, attached_wires
from ferrule.emulation.contract import contract_plan
from ferrule.facade.running import connect, engine_for, linked_board, reach_tensors
from ferrule.graph import Array
from ferrule.link import LinkTimeoutError, RunFailedError
from ferrule.network import Network
from ferrule.network.samples import Sample
from ferrule.report.assembly import BuiltFirmware
from ferrule.report.tracing import explained


class RunningFirmware(Closing):
    """A firmware on an engine, started once for many samples; it compares nothing. For use by one thread."""

    def __init__(
        self,
        firmware: BuiltFirmware,
        *,
        engine: str | None = None,
        options: EngineOptions | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """Start the firmware; `timeout_s` limits one inference, as in `Firmware.run`.

        Raises:
            FerruleError: as `Firmware.run` does.
        """
        self._firmware = firmware
        given = options or EngineOptions()
        chosen = engine_for(engine or fitting_engine(firmware.board), firmware.board, firmware.program)
        machine = Machine(
            board=linked_board(firmware),
            elf=firmware.image.path,
            devices=attached_devices(firmware.artifact, firmware.image, {}, program=firmware.program),
            wires=attached_wires(firmware.program),
            options=given,
            contract=contract_plan(firmware.program, firmware.image),
            callback_s=timeout_s,
        )
        with ExitStack() as stack:
            self._session = stack.enter_context(chosen.start(machine))
            try:
                self._link = connect(firmware, self._session, timeout_s)
            except LinkTimeoutError as error:
                raise self._crash(error) from error
            reach_tensors(firmware, self._session, self._link, machine)
            self._stack = stack.pop_all()

    @property
    def network(self) -> Network:
        """The network that the firmware runs."""
        return self._firmware.network

    def run(self, sample: Sample, *, reset: bool = False) -> list[Array]:
        """Return the outputs for one sample; with `reset`, a model with state begins with its initial one.

        Raises:
            InputError: an input has the wrong dtype or shape.
            EngineError: the firmware faulted or hung.
            RunFailedError: a device or an operator failed; the message names the layer.
        """
        try:
            return list(self._link.run(sample, reset=reset and bool(self._firmware.network.states)).outputs)
        except RunFailedError as error:
            raise explained(error, self._firmware.artifact) from error
        except LinkTimeoutError as error:
            raise self._crash(error) from error

    def _crash(self, error: LinkTimeoutError) -> EngineError:
        return EngineError(str(error), hint=error.hint, report=self._session.crash_report(str(error)))

    @override
    def close(self) -> None:
        """Stop the engine; a second call does nothing."""
        self._stack.close()
