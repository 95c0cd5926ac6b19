# SPDX-License-Identifier: Apache-2.0
"""The functions that a call through a pointer can reach, by the kind of the pointer.

The object files tell which functions have their address taken, and where. The first table says what a function is for,
by this place; a function of the user's is OTHER, also one of a driver's table, since the layout of a table does not
prove what calls its functions. The second table says what each of Ferrule's functions calls through pointers. Every
such call can also reach the user's functions, except that of the link's requests, whose table is const. A function that
is not in it, such as main() or a driver of the user's, can call all but those that only Ferrule calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Flag, auto
from pathlib import Path

from ferrule.architectures import Instructions
from ferrule.firmware.elf32 import FUNCTION, SECTION, SOURCE, Elf32, ElfSection, ElfSymbol, Relocation

_VECTORS = ".ferrule_vectors"


class Kind(Flag):
    """What a function whose address is taken is for."""

    REQUEST = auto()
    """Handles a request of the link."""
    MODEL = auto()
    """Runs a model for the link, or asks its devices for counts."""
    OPERATOR = auto()
    """The link's callbacks during a run."""
    DRIVER = auto()
    """A member of the `struct ferrule_driver` of one of Ferrule's drivers."""
    BYTES = auto()
    """Reads or writes a byte of a UART, or of a frame."""
    FRAME = auto()
    """Reads or writes a byte of a frame through a transport."""
    TRANSPORT = auto()
    """A member of a `struct ferrule_transport`."""
    PART = auto()
    """A part of a kernel that the rest of the kernel chooses by its parameters."""
    WHOLE = auto()
    """Such a part that has parts itself."""
    ROWS = auto()
    """Widens the rows under windows for such parts."""
    OTHER = auto()


_FUNCTIONS: tuple[tuple[str, str, Kind], ...] = (
    (r"link\.c:HANDLERS", r"link\.c:\w+", Kind.REQUEST),
    (r"ferrule_\w+_link_model", r"ferrule_\w+_link\.c:(run|statistic)", Kind.MODEL),
    (r"ferrule_micro_programs_link_model", r"micro_programs\.c:run", Kind.MODEL),
    (r"micro_programs\.c:.*", r"ferrule_micro_\w+", Kind.PART),
    (r"ferrule_link_run|run\.c:.*", r"run\.c:(record|follow|trace)", Kind.OPERATOR),
    (r"(woofles|uart_woofles|soft_npu)_driver", r"(woofles|uart_woofles|soft_npu)\.c:\w+", Kind.DRIVER),
    (r".*", r"ferrule_uart_transport_(read|write)", Kind.TRANSPORT),
    (r".*", r"ferrule_uart_[a-z0-9]+_(read|write|can_write)", Kind.BYTES),
    (r"uart_woofles_request_init|request\.c:.*", r"request\.c:(read|write)_byte", Kind.FRAME),
    (r".*", r"depthwise_conv2d_3x3_by[12](_exact)?_s8\.c:(turn|store_line)", Kind.PART),
    (r".*", r"ferrule_(expand|widen|multiply)_(pairs|words)\w*|ferrule_store_(sums\w*|dead)", Kind.PART),
    (r".*", r"ferrule_block_gather(_lines)?", Kind.ROWS),
    (r".*", r"ferrule_(block|mve_depthwise|mve_plane|conv2d_block_copy)_?\w*", Kind.PART),
    (r".*", r"ferrule_conv2d_(dual|unpacked)_(whole|groups)_s16", Kind.PART),
    (r".*", r"ferrule_float_(blocks|channels)\w*", Kind.PART),
    (r".*", r"ferrule_conv2d_block_(lines|image)", Kind.WHOLE),
    (r".*", r"lstm_(block|mve)_s8\.c:(logistic|tanh)_gate\w*", Kind.PART),
    (r".*", r"ferrule_(average|max)_pool2d_(2x2|3x3|any|many)_s8", Kind.PART),
)
"""Where the address is, the function, and its kind."""
_CALLERS: tuple[tuple[str, Kind], ...] = (
    (r"link\.c:statistics", Kind.MODEL),
    (r"ferrule_link_(poll|serve)|link\.c:\w+", Kind.REQUEST),
    (r"ferrule_link_run|run\.c:\w+", Kind.MODEL | Kind.OPERATOR | Kind.OTHER),
    (r"micro_programs\.c:run", Kind.OPERATOR | Kind.PART),
    (r"ferrule_held_\w+|held\.c:\w+", Kind.OPERATOR | Kind.OTHER),
    (r"ferrule_frame_(receive|send)|frame\.c:\w+", Kind.BYTES | Kind.FRAME | Kind.OTHER),
    (r"ferrule_device_\w+|(device|command)\.c:\w+", Kind.DRIVER | Kind.OTHER),
    (r"ferrule_platform_(power|cut)", Kind.OTHER),
    (r"ferrule_(average|max)_pool2d_(2x2|3x3|any|many)_s8", Kind(0)),
    (r"ferrule_(average|max)_pool2d_s8|(average|max)_pool2d_s8\.c:\w+", Kind.PART),
    (r"ferrule_block_((exact|pieces|proved)(_listed)?|wide)", Kind.ROWS),
    (r"ferrule_(mve|block|dual|winograd)_\w+", Kind(0)),  # assembler that jumps within itself
    (r"ferrule_uart_transport_(read|write)|uart_transport\.c:\w+", Kind.BYTES | Kind.OTHER),
    (r"uart_woofles_(ask|execute)|(request|uart_woofles)\.c:\w+", Kind.TRANSPORT | Kind.OTHER),
    (r"(woofles|soft_npu)_execute|woofles_start|(woofles|soft_npu)\.c:\w+", Kind.OTHER),
    (r"ferrule_depthwise_(lines|conv2d_window_s8)|depthwise_(lines|conv2d_window_s8)\.c:\w+", Kind.PART),
    (r"ferrule_conv2d_block_copy\w*|ferrule_conv2d_(dual|unpacked)_(whole|groups)_s16", Kind(0)),
    (r"ferrule_conv2d_(dual|unpacked)_s16", Kind.PART),
    (r"ferrule_float_\w+|float_pixels\.c:\w+", Kind(0)),
    (r"ferrule_(depthwise_)?conv2d_f32|(depthwise_)?conv2d_f32\.c:\w+", Kind.PART),
    (r"ferrule_conv2d_block_(lines|image)|conv2d_block_s8\.c:gather_two", Kind.PART | Kind.ROWS),
    (r"ferrule_conv2d_block_s8|conv2d_block_s8\.c:convolve", Kind.PART | Kind.WHOLE),
    (r"ferrule_\w+_block_s8|(conv2d|conv2d_1x1|fully_connected|batch_matmul)_block_s8\.c:\w+", Kind.PART),
    (r"ferrule_(lstm|svdf)_\w+|(lstm|svdf)_(block|mve)_\w+\.c:\w+", Kind.PART),
    (r"ferrule_batch_matmul_(direct|octet)_s8|batch_matmul_(direct|octet)_s8\.c:\w+", Kind.PART),
    (r"ferrule_depthwise_conv2d_(planes_)?mve_s8|depthwise_conv2d_(planes_)?mve_s8\.c:\w+", Kind.PART),
    (r"(batch_matmul_block|conv2d_points)_s16\.c:\w+", Kind(0)),
    (r"ferrule_\w+\.c:\w+", Kind.OPERATOR | Kind.OTHER),
)
"""A function that calls through pointers, and the kinds that it calls."""
_EXECUTOR = Kind.OPERATOR | Kind.OTHER
_UNKNOWN_CALLER = ~(Kind.REQUEST | Kind.OPERATOR | Kind.PART | Kind.WHOLE | Kind.ROWS)
_KERNELS_WITH_PARTS = (
    "batch_matmul_block_s16",
    "batch_matmul_block_s8",
    "batch_matmul_direct_s8",
    "batch_matmul_octet_s8",
    "conv2d_1x1_block_s8",
    "conv2d_block_s8",
    "conv2d_f32",
    "conv2d_points_s16",
    "depthwise_conv2d_3x3_by1_exact_s8",
    "depthwise_conv2d_3x3_by1_s8",
    "depthwise_conv2d_3x3_by2_exact_s8",
    "depthwise_conv2d_3x3_by2_s8",
    "depthwise_conv2d_f32",
    "depthwise_conv2d_mve_s8",
    "depthwise_conv2d_planes_mve_s8",
    "depthwise_conv2d_window_s8",
    "depthwise_lines",
    "fully_connected_block_s8",
    "lstm_block_s8",
    "lstm_mve_s8",
    "svdf_block_s16_state",
    "svdf_block_s8",
)
_OWN_FILES: Mapping[str, str] = {
    "link.c": "ferrule_link_poll",
    "run.c": "ferrule_link_run",
    "held.c": "ferrule_held_end",
    "frame.c": "ferrule_frame_receive",
    "device.c": "ferrule_device_open",
    "command.c": "ferrule_device_finish",
    "uart_transport.c": "ferrule_uart_transport_read",
    "request.c": "uart_woofles_ask",
    "uart_woofles.c": "uart_woofles_execute",
    "woofles.c": "woofles_execute",
    "micro_programs.c": "ferrule_micro_programs_link_model",
    "soft_npu.c": "soft_npu_execute",
    **{f"{kernel}.c": f"ferrule_{kernel}" for kernel in _KERNELS_WITH_PARTS},
}
"""A symbol that tells Ferrule's file from one of the user's with the same name."""


class Pointers:
    """The functions whose address is in data or code, except in the vector table, and what calls them."""

    def __init__(self, objects: Iterable[Path], instructions: Instructions) -> None:
        files = [_ObjectFile(Elf32(path), instructions) for path in objects]
        foreign = {each.source for each in files if not each.is_own}
        self._own = {each.source for each in files if each.is_own} - foreign
        self.kinds: dict[str, Kind] = {}
        """What each function is for."""
        for each in files:
            for place, key in each.pointers():
                found = (
                    kind
                    for where, function, kind in _FUNCTIONS
                    if re.fullmatch(where, place) and self._matches(function, key)
                )
                self.kinds[key] = self.kinds.get(key, Kind(0)) | next(found, Kind.OTHER)

    def called_by(self, keys: Iterable[str]) -> Kind:
        """Return the kinds of functions that a function with these names calls through pointers."""
        for key in keys:
            model, run, _ = key.rpartition("_run")
            if run and key in {f"{model}_run", f"{model}_run_until"} and f"{model}.c" in self._own:
                return _EXECUTOR
            for pattern, kinds in _CALLERS:
                if self._matches(pattern, key):
                    return kinds
        return _UNKNOWN_CALLER

    def _matches(self, pattern: str, key: str) -> bool:
        """Return whether a name matches; GCC appends `.constprop.0` and the like to names of functions."""
        source, colon, _ = key.rpartition(":")
        return (not colon or source in self._own) and re.fullmatch(rf"(?:{pattern})(?:\.[\w.]+)?", key) is not None


class _ObjectFile:
    """The compiled code of one source."""

    def __init__(self, elf: Elf32, instructions: Instructions) -> None:
        self._elf = elf
        self._set = instructions
        self.source = next((symbol.name for symbol in elf.symbols if symbol.type == SOURCE), "")
        """The name of the source, without its folder."""
        self._inside: dict[int, list[ElfSymbol]] = {}
        for symbol in elf.symbols:
            if symbol.type != SECTION and symbol.name[:1] != "$":
                self._inside.setdefault(symbol.section, []).append(symbol)

    @property
    def is_own(self) -> bool:
        """Whether it is one of Ferrule's sources in the tables, or generated for a model."""
        stem = self.source.removesuffix(".c")
        known = {_OWN_FILES[self.source]} if self.source in _OWN_FILES else {f"{stem}_run", f"{stem}_model"}
        return any(symbol.key in known and symbol.section for symbol in self._elf.symbols)

    def pointers(self) -> Iterator[tuple[str, str]]:
        """Yield the function or object with an address of a function, and that function."""
        for number, relocations in self._elf.relocations():
            section = self._elf.sections[number]
            if not section.is_allocated or section.type == self._set.unwinding or section.name.startswith(_VECTORS):
                continue
            for each in relocations:
                if each.type not in self._set.calls:
                    place = self._place(number, section, each)
                    yield from ((place, key) for key in self._functions(self._elf.symbols[each.symbol]))

    def _place(self, number: int, section: ElfSection, relocation: Relocation) -> str:
        for symbol in self._inside.get(number, ()):
            start = symbol.value & ~1 if section.is_code else symbol.value
            if start <= relocation.offset < start + symbol.size_bytes:
                return symbol.key
        return section.name

    def _functions(self, symbol: ElfSymbol) -> Iterator[str]:
        """Yield the functions that a relocation's symbol can mean: itself, one of another file, or all of a section."""
        if symbol.type == SECTION:
            yield from (each.key for each in self._inside.get(symbol.section, ()) if each.type == FUNCTION)
        elif symbol.type == FUNCTION or not symbol.section:
            yield symbol.key
