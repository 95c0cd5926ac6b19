# SPDX-License-Identifier: Apache-2.0
"""The record of the fakes' calls made by the C under test."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule._frozen import frozen
from ferrule._typing import override

_WORDS = {
    "k_mutex_init": "new",
    "k_mutex_lock": "lock",
    "k_mutex_unlock": "unlock",
    "k_sem_init": "new",
    "k_sem_take": "take",
    "k_sem_give": "give",
    "k_sem_reset": "empty",
    "k_msleep": "sleep",
    "k_sleep": "sleep",
    "k_yield": "yield",
    "device_is_ready": "ready?",
    "pm_device_runtime_get": "on",
    "pm_device_runtime_put": "off",
    "osMutexNew": "new",
    "osMutexAcquire": "lock",
    "osMutexRelease": "unlock",
    "osMutexDelete": "delete",
    "osSemaphoreNew": "new",
    "osSemaphoreAcquire": "take",
    "osSemaphoreRelease": "give",
    "osSemaphoreDelete": "delete",
    "osEventFlagsNew": "new",
    "osEventFlagsWait": "wait",
    "osEventFlagsSet": "signal",
    "osEventFlagsDelete": "delete",
    "osDelay": "sleep",
    "osThreadYield": "yield",
    "osKernelLock": "mask",
    "osKernelUnlock": "unmask",
    "osKernelRestoreLock": "unmask",
    "Initialize": "init",
    "Uninitialize": "exit",
    "Control": "ctl",
    "Send": "send",
    "Receive": "receive",
    "Transfer": "transfer",
    "ferrule_port_critical_enter": "mask",
    "ferrule_port_critical_exit": "unmask",
}
_QUESTIONS = frozenset(
    (
        *("k_is_in_isr", "k_current_get", "k_uptime_get", "k_uptime_get_32", "k_sem_count_get", "k_cycle_get_32"),
        *("k_uptime_ticks", "k_thread_priority_get", "ferrule_port_now_us", "pm_device_on_power_domain"),
        *("osThreadGetId", "osKernelGetState", "osKernelGetTickCount", "osKernelGetTickFreq", "osMutexGetOwner"),
        *("osKernelGetSysTimerCount", "osKernelGetSysTimerFreq", "osThreadGetPriority"),
        *("k_spin_lock", "k_spin_unlock", "uart_irq_update", "uart_irq_rx_ready", "uart_irq_tx_ready"),
        *("osSemaphoreGetCount", "osEventFlagsGet", "GetVersion", "GetCapabilities", "GetStatus", "GetTxCount"),
        *("GetRxCount", "GetModemStatus", "ferrule_port_in_interrupt", "ferrule_port_thread"),
    )
)
"""Calls without side effects; traces omit them, because their number is irrelevant."""
_POWER = {0: "off", 1: "low", 2: "on"}


@frozen
class Call:
    """One recorded call of a fake."""

    name: str
    object: int
    """Address of the object of the call: a mutex, a device, the access struct of a driver; 0 if there is none."""
    arguments: tuple[int, ...]
    """The other arguments, without pointers."""
    result: int | None
    """None if the call has not returned, or ended its thread."""
    thread: int
    """Number of the calling thread, from 1."""
    in_interrupt: bool
    time_us: int
    """Virtual time at the start of the call."""

    @property
    def word(self) -> str:
        """One word for a trace; empty for a call without side effects."""
        if self.name == "PowerControl":
            return _POWER.get(self.arguments[0], "power")
        return "" if self.name in _QUESTIONS else _WORDS.get(self.name, self.name)

    @override
    def __str__(self) -> str:
        arguments = ", ".join(f"{value:#x}" if abs(value) > 9999 else str(value) for value in self.arguments)
        result = "..." if self.result is None else str(self.result)
        where = f"thread {self.thread}{', interrupt' if self.in_interrupt else ''}"
        return f"{self.time_us:>8} us  {where}  {self.name}({arguments}) -> {result}"


def trace(calls: Sequence[Call]) -> str:
    """Return the words of calls, such as "lock on ctl ctl ctl"; a failed call is followed by `=` and its result."""
    return " ".join(
        f"{call.word}={call.result}" if call.result is not None and call.result < 0 else call.word
        for call in calls
        if call.word
    )
