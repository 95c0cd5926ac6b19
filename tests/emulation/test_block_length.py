# SPDX-License-Identifier: Apache-2.0
"""The instruction count of the C hooks for a block of Thumb code, against a plain decoder."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import require_module

from ferrule.architectures import CORTEX_M
from ferrule.emulation.unicorn.layout import GuestState, Window
from ferrule.emulation.unicorn.library import load_hooks

pytestmark = pytest.mark.cc

FLASH, RAM = 0x0800_0000, 0x2000_0000
CODE_HALFWORDS = 4096

halfword = st.integers(0, 0xFFFF)
narrow = halfword.filter(lambda value: value < 0xE800).map(lambda value: value.to_bytes(2, "little"))
wide = st.builds(
    lambda first, second: first.to_bytes(2, "little") + second.to_bytes(2, "little"),
    st.integers(0xE800, 0xFFFF),
    halfword,
)
instructions = st.lists(narrow | wide, min_size=1, max_size=60)


@pytest.fixture(scope="module")
def hooks(host_cc: tuple[str, ...]) -> ctypes.CDLL:
    """The loaded library of hooks."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    library = load_hooks(CORTEX_M.model)
    library.ferrule_guest_count.restype = ctypes.c_uint32
    library.ferrule_guest_count.argtypes = (ctypes.POINTER(GuestState), ctypes.c_uint32, ctypes.c_uint32)
    return library


def guest_with(flash: ctypes.Array[ctypes.c_char], ram: ctypes.Array[ctypes.c_char]) -> GuestState:
    """Return a guest with two memories."""
    guest = GuestState(window_count=2)
    guest.windows[0] = Window(FLASH, len(flash), ctypes.addressof(flash), 1)
    guest.windows[1] = Window(RAM, len(ram), ctypes.addressof(ram), 0)
    return guest


@settings(max_examples=60)
@given(pieces=st.lists(instructions, min_size=1, max_size=20))
def test_counts_instructions(hooks: ctypes.CDLL, pieces: list[list[bytes]]) -> None:
    code = b"".join(b"".join(piece) for piece in pieces)
    flash, ram = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(code, len(code))
    guest = guest_with(flash, ram)
    for base in (FLASH, RAM, FLASH):  # the second time it comes from the cache
        offset = 0
        for piece in pieces:
            size = len(b"".join(piece))
            assert hooks.ferrule_guest_count(guest, base + offset, size) == len(piece)
            offset += size
        assert hooks.ferrule_guest_count(guest, base, len(code)) == sum(map(len, pieces))


def test_far_apart_blocks_share_the_cache(hooks: ctypes.CDLL) -> None:
    code = (b"\x00\xbf" * 3 + b"\xaf\xf3\x00\x80") * 100_000
    flash, ram = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"\x00\xbf", 2)
    guest = guest_with(flash, ram)
    for _ in range(2):
        for offset in range(0, len(code), 10):
            size = 10 * (1 + offset // 10 % 7)
            if offset + size <= len(code):
                assert hooks.ferrule_guest_count(guest, FLASH + offset, size) == 4 * size // 10


def test_rewritten_ram_is_decoded_anew(hooks: ctypes.CDLL) -> None:
    flash, ram = ctypes.create_string_buffer(2), ctypes.create_string_buffer(b"\x00\xbf\x00\xbf", 4)
    guest = guest_with(flash, ram)
    assert hooks.ferrule_guest_count(guest, RAM, 4) == 2
    ram[:4] = b"\xaf\xf3\x00\x80"
    assert hooks.ferrule_guest_count(guest, RAM, 4) == 1


def test_outside_of_memory_nothing_is_counted(hooks: ctypes.CDLL) -> None:
    flash, ram = ctypes.create_string_buffer(4), ctypes.create_string_buffer(4)
    guest = guest_with(flash, ram)
    for address, size in ((FLASH - 2, 4), (FLASH + 2, 4), (0, 2), (0xFFFF_FFFE, 4), (FLASH, 0)):
        assert hooks.ferrule_guest_count(guest, address, size) == 0
