# SPDX-License-Identifier: Apache-2.0
"""An emulated board whose device has faults, restarted if a bus error made the core fault."""

from __future__ import annotations

import ferrule
from ferrule.devices import Fault, FaultInjector, RegisterAccess
from ferrule.emulation import EngineError, Machine, Session, engine
from ferrule.emulation.attached import attached_devices, inject
from ferrule.graph import Array
from ferrule.link import LinkSession, RunFailedError


class FaultyBoard:
    """A firmware with one device on an emulated board, restarted if a bus error made the core fault."""

    def __init__(self, firmware: ferrule.Firmware, *, patience_s: float = 30) -> None:
        self._firmware = firmware
        self._patience_s = patience_s
        self._device = firmware.artifact.devices[0].device.name
        self._session: Session | None = None
        self.starts = 0
        """How often the board was started."""
        self.injector = FaultInjector(firmware.artifact.devices[0].driver.model())  # type: ignore[misc]
        """Counts the accesses and transfers of the last run; a new one after each start of the board."""
        self.accesses: list[RegisterAccess] = []
        """The accesses of the last run."""
        self._link = self._start()

    def _start(self) -> LinkSession:
        self.stop()
        self.starts += 1
        faults = {self._device: Fault()}
        devices = attached_devices(self._firmware.artifact, self._firmware.image, faults)
        machine = Machine(board=self._firmware.board, elf=self._firmware.elf, devices=devices)
        self._session = engine("unicorn").start(machine)
        link = LinkSession(self._session.channel(), run_timeout_s=self._patience_s, start_timeout_s=self._patience_s)
        link.model_info()
        inject(devices, faults)
        model = devices[0].model
        assert isinstance(model, FaultInjector)
        self.injector = model
        return link

    def run(self, inputs: list[Array], fault: Fault | None) -> Array | str:
        """Return the output, or a description of the failure."""
        injector = self.injector
        injector.inject(fault)
        try:
            return self._link.run(inputs).outputs[0]
        except RunFailedError as error:
            return str(error)
        except EngineError as error:
            self.restart()
            return str(error)
        finally:
            self.accesses = list(injector.accesses)

    def restart(self) -> None:
        """Start the board again, without a fault."""
        self._link = self._start()

    def stop(self) -> None:
        """End the emulation."""
        if self._session is not None:
            self._session.stop()
