# SPDX-License-Identifier: Apache-2.0
"""The description of a board that CMSIS needs: core, interrupts, UARTs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from ferrule._frozen import frozen, positional
from ferrule.boards import Board, Peripheral
from ferrule.errors import FerruleError

USART_CLASS = "UART.CMSDK_APB_UART"
"""Renode's class of the UART that `platforms/cmsis/drivers/usart_cmsdk.c` drives."""
LINES = 240
"""The largest number of interrupts of a core (Armv7-M ARM, B1.5.3, and the limit of CMSIS-Core)."""
_TARGET_TYPE = re.compile(r"[A-Za-z0-9_-]{1,32}")


@positional
class CmsisCore:
    """A processor core as CMSIS names it."""

    letters: str
    """The end of its names in CMSIS, such as M4."""
    revision: str
    rtx_handlers: str
    """Name of RTX5's file with the exception handlers for GCC."""
    macros: Mapping[str, str] = field(default_factory=dict)
    """The macros that only devices with this core define, as `CmsisBoard.macros`."""
    secure: bool = False
    """Whether the core has security states; the firmware runs in the secure state."""

    @property
    def device(self) -> str:
        """Name of the generic device in ARM::Cortex_DFP."""
        return f"ARM::ARMC{self.letters}"

    @property
    def header(self) -> str:
        """File name of CMSIS-Core's header for the core."""
        return f"core_c{self.letters.lower()}.h"


@positional
class Vector:
    """An interrupt with a handler."""

    number: int
    stem: str
    """Common part of its names: UART0_RX in UART0_RX_Handler and UART0_RX_IRQn."""
    owner: str
    """Name of the UART or device that raises the interrupt."""


@frozen
class Usart:
    """A UART with its CMSIS-Driver."""

    index: int
    """The n in Driver_USART<n>."""
    name: str
    address: int
    rx: Vector
    tx: Vector


@frozen
class CmsisBoard:
    """A board as CMSIS sees it."""

    core: CmsisCore
    macros: Mapping[str, str]
    """Names and values of the macros that a device's header defines before it includes CMSIS-Core's header."""
    usarts: tuple[Usart, ...]
    link_usart: int
    """The n in Driver_USART<n> of the link."""
    devices: tuple[Vector, ...] = ()
    """Interrupts of the devices that run layers."""

    @property
    def vectors(self) -> tuple[Vector, ...]:
        """All interrupts with a handler, ordered by number."""
        uarts = (each for usart in self.usarts for each in (usart.rx, usart.tx))
        return tuple(sorted((*uarts, *self.devices), key=lambda vector: vector.number))

    def usart(self, uart: Peripheral) -> Usart:
        """Return the CMSIS-Driver of a UART; FerruleError if there is none for its class."""
        for usart in self.usarts:
            if usart.name == uart.name:
                return usart
        raise FerruleError(
            f"there is no CMSIS-Driver for UART '{uart.name}' of class {uart.type}", hint=f"known: {USART_CLASS}"
        )

    @property
    def vector_count(self) -> int:
        """Number of interrupts in the vector table."""
        return max(vector.number for vector in self.vectors) + 1


def cmsis_board(board: Board, interrupts: Sequence[tuple[str, int]] = ()) -> CmsisBoard:
    """Return a board's description for CMSIS; `interrupts` holds name and interrupt number of devices that run layers.

    Raises:
        FerruleError: there is no CMSIS device for the core or no CMSIS-Driver for the link UART, the board's name is
            not valid as a target type, or an interrupt is used twice or does not exist.
    """
    if not _TARGET_TYPE.fullmatch(board.name):
        raise FerruleError(
            f"board '{board.name}' cannot be a target type of a csolution",
            hint="rename its folder: up to 32 letters, digits, - and _",
        )
    if board.link_uart.type != USART_CLASS:
        raise FerruleError(
            f"board {board.name}: there is no CMSIS-Driver for its link UART '{board.link_uart.name}' of class "
            f"{board.link_uart.type}",
            hint=f"choose another UART in board.toml; known: {USART_CLASS}",
        )
    usarts = tuple(_usart(board, index, uart) for index, uart in enumerate(board.peripherals_of(USART_CLASS)))
    link = next(usart.index for usart in usarts if usart.name == board.link_uart.name)
    core = _CORES.get(board.cpu.type)
    if core is None:
        raise FerruleError(
            f"board {board.name}: its core {board.cpu.type} is not supported in CMSIS projects",
            hint=f"known: {', '.join(_CORES)}",
        )
    macros = {
        f"__C{core.letters}_REV": core.revision,
        "__NVIC_PRIO_BITS": "3U",
        "__Vendor_SysTickConfig": "0U",
        "__VTOR_PRESENT": "1U",
        "__MPU_PRESENT": "1U",
        "__FPU_PRESENT": f"{int(board.cpu.hard_float)}U",
        **({"__FPU_DP": "1U"} if board.cpu.fpu == "fpv5-d16" else {}),
        "__DSP_PRESENT": f"{int(board.cpu.dsp)}U",
    }
    found = CmsisBoard(
        core=core,
        macros={**macros, **core.macros},
        usarts=usarts,
        link_usart=link,
        devices=tuple(Vector(number, f"Interrupt{number}", name) for name, number in interrupts),
    )
    for vector, other in itertools.pairwise(found.vectors):
        if vector.number == other.number:
            raise FerruleError(
                f"board {board.name}: interrupt {vector.number} is used by both {vector.owner} and {other.owner}",
                hint="give the device another interrupt",
            )
    if found.vector_count > LINES:
        raise FerruleError(
            f"board {board.name}: interrupt {found.vector_count - 1} does not exist, the core has 0 to {LINES - 1}",
            hint="give the device another interrupt",
        )
    return found


_CORES: Mapping[str, CmsisCore] = {
    "cortex-m3": CmsisCore("M3", "0x0201U", "irq_armv7m.S"),
    "cortex-m4": CmsisCore("M4", "0x0001U", "irq_armv7m.S"),
    "cortex-m7": CmsisCore(
        "M7",
        "0x0101U",
        "irq_armv7m.S",
        macros={"__ICACHE_PRESENT": "1U", "__DCACHE_PRESENT": "1U", "__DTCM_PRESENT": "0U"},
    ),
    "cortex-m33": CmsisCore(
        "M33",
        "0x0004U",
        "irq_armv8mml.S",
        macros={"__SAUREGION_PRESENT": "1U"},
        secure=True,
    ),
}


def _usart(board: Board, index: int, uart: Peripheral) -> Usart:
    lines = {str(interrupt.source): interrupt.index for interrupt in uart.interrupts}
    for name in ("RxInterrupt", "TxInterrupt"):
        if name not in lines:
            raise FerruleError(
                f"board {board.name}: UART '{uart.name}' has no {name} in {board.platform.name}",
                hint=f"add the line: {name} -> nvic@NUMBER",
            )
    stem = uart.name.upper()
    return Usart(
        index=index,
        name=uart.name,
        address=uart.address,
        rx=Vector(lines["RxInterrupt"], f"{stem}_RX", uart.name),
        tx=Vector(lines["TxInterrupt"], f"{stem}_TX", uart.name),
    )
