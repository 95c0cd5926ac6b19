# SPDX-License-Identifier: Apache-2.0
"""The fakes of each platform."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.errors import FerruleError, unknown_name
from ferrule.testing.cdata import CData
from ferrule.testing.fakes import Fakes, Wire

_DEVICES = 8
_USARTS = 4


class ZephyrFakes(Fakes):
    """Zephyr's kernel, devices, power management and UARTs."""

    @override
    def reset(self) -> None:
        super().reset()
        self._devices: dict[str, int] = {}

    def device(self, name: str) -> CData:
        """Return the `const struct device *` with this name, created on first use; it is ready and works."""
        number = self._devices.setdefault(name, len(self._devices))
        if number == _DEVICES:
            raise FerruleError(f"there are at most {_DEVICES} devices, {name} would be one more")
        return self.library.ferrule_fake_device(number, name.encode())

    def not_ready(self, name: str) -> None:
        """Make device_is_ready() return false from now on."""
        self.library.ferrule_fake_set_ready(self._number_of(name), 0)

    def ready(self, name: str) -> None:
        """Make device_is_ready() return true again."""
        self.library.ferrule_fake_set_ready(self._number_of(name), 1)

    def power_count(self, name: str) -> int:
        """Return the number of pm_device_runtime_get() calls minus that of pm_device_runtime_put() calls."""
        return int(self.library.ferrule_fake_power_count(self._number_of(name)))

    @property
    def log(self) -> tuple[str, ...]:
        """The messages in Zephyr's log since the last reset, such as "<err> npu is not ready"."""
        return tuple(self.ffi.string(self.library.ferrule_fake_log_text()).decode().splitlines())

    def set_tick(self, us: int, *, cycles_hz: int = 1_000_000) -> None:
        """Make a tick `us` microseconds long, in place of one: time-outs then end with a tick.

        `cycles_hz` is the rate of k_cycle_get_32().
        """
        self.library.ferrule_fake_set_clocks(us, cycles_hz)

    def uart(self, name: str) -> Wire:
        """Return the remote end of a device that is a UART."""
        self.device(name)
        return Wire(self, self._number_of(name))

    def uart_errors(self, name: str, errors: int) -> None:
        """Make the next uart_err_check() return `errors`, once."""
        self.library.ferrule_fake_set_uart_errors(self._number_of(name), errors)

    def _number_of(self, name: str) -> int:
        if name not in self._devices:
            raise unknown_name("device", name, self._devices)
        return self._devices[name]


class CmsisFakes(Fakes):
    """CMSIS-RTOS2 and four strict USARTs, Driver_USART0 to 3."""

    def usart(self, number: int) -> Wire:
        """Return the remote end of a USART."""
        return Wire(self, self._checked(number))

    def access(self, number: int) -> CData:
        """Return `&Driver_USARTn`."""
        return self.ffi.addressof(self.library, f"Driver_USART{self._checked(number)}")

    def signal(self, number: int, event: int) -> None:
        """Make the driver signal an event, such as ARM_USART_EVENT_RX_OVERFLOW, in an interrupt."""
        self.library.ferrule_fake_signal(self._checked(number), event)
        self.check()

    def set_usart(self, number: int, *, api: int = 0x204, asynchronous: bool = True) -> None:
        """Change the results of GetVersion and GetCapabilities."""
        self.library.ferrule_fake_set_usart(self._checked(number), api, int(asynchronous))

    @staticmethod
    def _checked(number: int) -> int:
        if not 0 <= number < _USARTS:
            raise FerruleError(f"there are USARTs 0 to {_USARTS - 1}, not {number}")
        return number
