# SPDX-License-Identifier: Apache-2.0
"""A core with its memories in unicorn, whose instructions the C hooks count."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from ferrule.architectures import address_text
from ferrule.boards import Board, Memory, MemoryKind
from ferrule.devices import BusError
from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.library import load_hooks
from ferrule.firmware import Image

ReadRegister = Callable[[int, int], int]
"""(offset, size in bytes) -> value"""
WriteRegister = Callable[[int, int, int], None]
"""(offset, size in bytes, value)"""
_ASK = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64)


class _Asked(NamedTuple):
    """A peripheral whose model is in Python."""

    address: int
    size_bytes: int
    read: ReadRegister
    write: WriteRegister


class Guest:
    """One emulated core with its memories; it executes only within `Processor.run` and `Processor.step`."""

    def __init__(self, board: Board) -> None:
        architecture = board.architecture
        self.registers_of = architecture.registers
        """The names of its registers."""
        self.semihosting = architecture.semihosting
        self.model = architecture.model
        """What its architecture brings to this engine."""
        core = self.model.unicorn
        model = core.models.get(board.cpu.type)
        if model is None:
            raise EngineError(
                f"the unicorn engine has no {board.cpu.type}, the core of board {board.name}",
                hint=f"it has {', '.join(core.models)}",
            )
        unicorn = self._unicorn = import_module("unicorn")
        self._constants = import_module(core.constants)
        self._library = import_module("unicorn.unicorn_py3.unicorn").uclib
        self.hooks = load_hooks(self.model)
        self._board_name = board.name
        self.failure: BaseException | None = None
        """The exception raised by a device model in Python; None if there is none."""
        self.failed_registers: dict[str, int] = {}
        """The core's registers when it was raised: at the access, or after the block if the access is not exact."""
        self.engine: Any = unicorn.Uc(getattr(unicorn, core.architecture), getattr(unicorn, core.mode))
        self.engine.ctl_set_cpu_model(getattr(self._constants, model))
        self.engine.ctl_exits_enabled(True)  # no address ends the emulation
        self._handle = self.engine._uch  # noqa: SLF001 (the binding has no way to add a hook in C)
        self.state = layout.GuestState()
        self._kept: list[object] = []
        self._storages: list[mmap.mmap] = []
        """The memory of each window."""
        self._asked: list[_Asked] = []
        self._prepare_state()
        for memory in board.memories:
            self._map_memory(memory)
        self._add_hook(unicorn.UC_HOOK_BLOCK, "ferrule_guest_on_block")
        self._add_hook(unicorn.UC_HOOK_MEM_INVALID, "ferrule_guest_on_refused")
        self._add_hook(unicorn.UC_HOOK_INTR, "ferrule_guest_on_exception")

    def _prepare_state(self) -> None:
        state = self.state
        for field, function in (
            ("start_emulation", "uc_emu_start"),
            ("stop_emulation", "uc_emu_stop"),
            ("read_register", "uc_reg_read"),
            ("write_register", "uc_reg_write"),
            ("add_hook", "uc_hook_add"),
            ("delete_hook", "uc_hook_del"),
            ("control", "uc_ctl"),
            ("protect_memory", "uc_mem_protect"),
        ):
            setattr(state, field, self._address_of(self._library, function))
        state.engine = self._handle.value
        for index, name in enumerate(self.model.registers):
            state.register_ids[index] = self.register_id(name)

    def register_id(self, name: str) -> int:
        """Return unicorn's number for a register."""
        return int(getattr(self._constants, f"{self.model.unicorn.register_prefix}{name.upper()}"))

    @property
    def state_address(self) -> int:
        """The address of its `struct ferrule_guest`."""
        return ctypes.addressof(self.state)

    @staticmethod
    def _address_of(library: ctypes.CDLL, function: str) -> int:
        return ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0

    def check(self, error: int, what: str) -> None:
        """Raise EngineError if `error`, a unicorn error number, is not 0."""
        if error:
            raise EngineError(f"unicorn can't {what}: {self.error_text(error)}")

    def _map_memory(self, memory: Memory) -> None:
        size = self._pages(memory.size_bytes)
        storage = mmap.mmap(-1, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(storage))
        constant = memory.kind is MemoryKind.FLASH
        # unicorn makes writes to memory without code several times faster; see ferrule_guest_allow_code()
        more = self._unicorn.UC_PROT_EXEC if constant else self._unicorn.UC_PROT_WRITE
        permissions = self._unicorn.UC_PROT_READ | more
        for base in (memory.address, *memory.aliases):
            if self.state.window_count == layout.WINDOWS:
                raise EngineError(f"the unicorn engine supports at most {layout.WINDOWS} memories, including aliases")
            self.check(
                self._library.uc_mem_map_ptr(self._handle, base, size, permissions, address),
                f"map the memory {memory.name} at {base:#x}",
            )
            window = layout.Window(base, memory.size_bytes, address, constant, constant)
            self.state.windows[self.state.window_count] = window
            self.state.window_count += 1
            self._storages.append(storage)

    def allow_code(self) -> None:
        """Let the core execute all memories from now on, instead of from its first attempt on."""
        for window in self.state.windows[: self.state.window_count]:
            self.hooks.ferrule_guest_allow_code(ctypes.byref(self.state), window.address)

    def _add_hook(self, kind: int, function: str) -> None:
        everywhere = (ctypes.c_uint64(1), ctypes.c_uint64(0))
        callback = self._address_of(self.hooks, function)
        hook, state = ctypes.byref(ctypes.c_size_t()), ctypes.addressof(self.state)
        error = self._library.uc_hook_add(self._handle, hook, kind, callback, state, *everywhere)
        self.check(error, f"add {function}")

    def load(self, image: Image) -> None:
        """Write a firmware's segments to the board's memories."""
        for segment in image.segments:
            if not self.write_memory(segment.address, segment.data):
                raise EngineError(
                    f"the firmware has {len(segment.data)} B at {segment.address:#010x}, where the board has no memory",
                    hint="build the firmware for this board",
                )

    def _place(self, address: int, size_bytes: int) -> tuple[layout.Window, mmap.mmap, int] | None:
        """Return the memory that has all bytes of a range, with their offset in it; None if there is none."""
        for window, storage in zip(self.state.windows, self._storages, strict=False):
            offset = address - window.address
            if offset >= 0 and size_bytes >= 0 and offset + size_bytes <= window.bytes:
                return window, storage, offset
        return None

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """Read bytes of a memory; fewer if the memory ends earlier."""
        found = self._place(address, 1)
        return b"" if found is None else found[1][found[2] : found[2] + size_bytes]

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """Return words of a memory; fewer if the memory ends earlier."""
        data = self.read_memory(address, 4 * count)
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) & ~3])

    def write_memory(self, address: int, data: bytes) -> bool:
        """Write bytes to a memory, including code and flash; return False if they do not lie within one memory."""
        found = self._place(address, len(data))
        if found is None:
            return False
        _, storage, offset = found
        storage[offset : offset + len(data)] = data
        self.engine.ctl_flush_tb()
        ctypes.memset(self.state.cache, 0, ctypes.sizeof(self.state.cache))
        if self.state.timing:
            self.hooks.ferrule_timing_forget(self.state.timing, ctypes.byref(self.state))
        return True

    def memory_view(self, address: int, size_bytes: int) -> memoryview:
        """Return a range of the guest's memory itself for DMA, in 8-bit items; writable only if the guest may write it.

        `numpy.frombuffer` on it makes no copy. Code changed through it is not translated again.

        Raises:
            EngineError: the range does not lie within one memory of the board.
        """
        found = self._place(address, size_bytes)
        if found is None:
            raise EngineError(
                f"the {size_bytes} B at {address_text(address)} do not lie in one memory of {self._board_name}"
            )
        window, storage, offset = found
        view = memoryview(storage)[offset : offset + size_bytes]
        return view.toreadonly() if window.constant else view

    def map_c(
        self, address: int, size_bytes: int, read: str, write: str, unit: ctypes.Structure | ctypes.Array[ctypes.c_char]
    ) -> None:
        """Attach a peripheral whose functions `read` and `write` are in the C hooks."""
        self._kept.append(unit)
        user = ctypes.addressof(unit)
        functions = (self._address_of(self.hooks, read), user, self._address_of(self.hooks, write), user)
        self._map_functions("a peripheral", address, size_bytes, *functions)

    def map_watched(
        self, address: int, size_bytes: int, read: str, write: str, unit: ctypes.Structure, *, protected: bool
    ) -> int:
        """Let the C hooks make the core's accesses to whole pages of a memory, and return the address of its bytes.

        If `protected`, each access is preceded by a call of ferrule_guest_on_refused(), which has the pc of its
        instruction.
        """
        bytes_ = 0
        windows = list(self.state.windows[: self.state.window_count])
        home = next(each for each in windows if 0 <= address - each.address < each.bytes)
        for window in windows:
            if window.data != home.data:
                continue
            start = window.address + address - home.address
            bytes_ = window.data + address - home.address
            handle = self._handle
            size = ctypes.c_size_t(self._pages(size_bytes))
            self.check(self._library.uc_mem_unmap(handle, ctypes.c_uint64(start), size), f"unmap {start:#x}")
            self.map_c(start, size_bytes, read, write, unit)
            if protected:
                self.synchronise(start, size_bytes)
        return bytes_

    def map_silent(self, address: int, size_bytes: int) -> None:
        """Map a range that reads as zero and ignores writes."""
        self._map_functions(f"{size_bytes} silent bytes", address, size_bytes, None, None, None, None)

    def _map_functions(self, what: str, address: int, size_bytes: int, *functions: int | None) -> None:
        error = self._library.uc_mmio_map(self._handle, ctypes.c_uint64(address), self._pages(size_bytes), *functions)
        self.check(error, f"map {what} at {address:#x}")

    def map_python(self, address: int, size_bytes: int, read: ReadRegister, write: WriteRegister) -> None:
        """Attach a peripheral whose model is in Python, for registers rather than data.

        A BusError in its functions becomes a bus fault of the access; any other exception ends the run and is raised by
        it. Within the functions `Processor.exact_now` is exact to the instruction.
        """
        self.map_c(address, size_bytes, "ferrule_guest_answer", "ferrule_guest_accept", self.state)
        self.synchronise(address, size_bytes)
        if not self._asked:
            self._ask = _ASK(self._on_access)
            self.state.ask = ctypes.cast(self._ask, ctypes.c_void_p)
        self._asked.append(_Asked(address, size_bytes, read, write))

    def _on_access(self, address: int, size: int, write: int, value: int) -> int:
        if self.failure is not None:
            return 1
        self.state.answer = 0
        try:
            self.state.answer = self._answer(address, size, value & ((1 << 8 * size) - 1) if write else None) or 0
        except BusError:
            return 0
        except BaseException as error:  # noqa: BLE001 (unicorn's frames are in between: `run` raises it)
            self._fail(error)
        return 1

    def _answer(self, address: int, size: int, value: int | None) -> int | None:
        """Let a model in Python answer an access; None if there is none."""
        for each in self._asked:
            offset = address - each.address
            if 0 <= offset < each.size_bytes:
                if value is None:
                    return each.read(offset, size)
                each.write(offset, size, value)
                return 0
        return None

    def bus_access(self, address: int, size_bytes: int, value: int | None = None) -> int:
        """Read an address as the core does during its current access, or write `value` if it is not None.

        Raises:
            BusError: nothing is there, or the memory is read-only, or the device's model refuses.
        """
        answer = self._answer(address, size_bytes, value)
        if answer is not None:
            return answer
        if value is not None and (found := self._place(address, 1)) is not None and found[0].constant:
            raise BusError(f"the memory at {address:#010x} is read-only", address=address)
        try:
            if value is None:
                return int.from_bytes(self.engine.mem_read(address, size_bytes), "little")
            self.engine.mem_write(address, value.to_bytes(size_bytes, "little"))
        except self._unicorn.UcError as error:
            raise BusError(f"nothing is at {address:#010x}", address=address) from error
        return 0

    def on_call(self, address: int, call: Callable[[], None]) -> None:
        """Call a function whenever the firmware comes to an address, such as that of a function.

        The hook is one of the instruction: one of blocks would be looked at before each block of the firmware.
        """
        self.engine.hook_add(self._unicorn.UC_HOOK_CODE, lambda *_: self.guarded(call), begin=address, end=address)
        self.engine.ctl_remove_cache(address, address + 2)  # translated without the hook, if at all

    def guarded(self, call: Callable[[], None]) -> None:
        """Call a function during a run; an exception ends the run, which raises it."""
        if self.failure is not None:
            return
        try:
            call()
        except BaseException as error:  # noqa: BLE001 (as above)
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self.failed_registers = self.registers()
        self.state.stop = layout.Stop.FAILED
        self.state.limit = 0

    def synchronise(self, address: int, size_bytes: int) -> None:
        """Make `state.now` exact at every access to a peripheral."""
        self.engine.mem_protect(address, self._pages(size_bytes), self._unicorn.UC_PROT_NONE)

    def _pages(self, size_bytes: int) -> int:
        page = self.model.unicorn.page_bytes
        return -(-size_bytes // page) * page

    def register(self, name: str) -> int:
        """Return the value of a register of the architecture by its name."""
        return int(self.engine.reg_read(self.register_id(name))) & 0xFFFF_FFFF

    def registers(self) -> dict[str, int]:
        """Return the values of the core registers by name."""
        return {name: self.register(name) for name in self.registers_of.all}

    def set_register(self, name: str, value: int) -> None:
        """Set a register of the architecture."""
        own, value = self.model.written(name, value)
        self.engine.reg_write(self.register_id(own), value)

    def argument(self, index: int) -> int:
        """Return one of the first arguments at the first instruction of a function; 0 is the result at its end."""
        return self.register(self.registers_of.arguments[index])

    @property
    def returns_to(self) -> int:
        """The address to which the function that the core has just entered returns."""
        return self.register(self.registers_of.link) & ~1

    def executed(self) -> int:
        """Return the number of instructions executed since reset."""
        count: int = self.hooks.ferrule_guest_executed(ctypes.byref(self.state), self.register("pc"))
        return count

    def elapsed(self) -> int:
        """Return the time since reset in units of the machine's clock, without sleep."""
        time: int = self.hooks.ferrule_guest_elapsed(ctypes.byref(self.state), self.register("pc"))
        return time

    def error_text(self, error: int) -> str:
        """Return unicorn's text for an error number."""
        text: bytes = self._library.uc_strerror(error)
        return text.decode()
