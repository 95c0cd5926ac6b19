# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets: command streams, compressed weights and raw files of Vela that somebody else gives to EthosU."""

from __future__ import annotations

import contextlib
import ctypes
import io
import mmap
import random
import struct
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from ethos_u_files import damaged_weights, npz_fields, payload, random_weights
from fuzzing import TIME_LIMIT_S, Check, Target, refused
from mutation import mutate
from needs import require_cc, require_module
from vela_cases import vela_case

from ferrule._typing import override
from ferrule.backends.ethos_u.commands import Long, Short
from ferrule.backends.ethos_u.compiled import CompiledStream, read_npz
from ferrule.backends.ethos_u.configuration import configuration
from ferrule.backends.ethos_u.errors import NpuBusError, StreamError
from ferrule.backends.ethos_u.feature_map import FeatureMap
from ferrule.backends.ethos_u.native_weights import NativeDecoder, library
from ferrule.backends.ethos_u.npu import ArrayMemory, Npu, prepared
from ferrule.backends.ethos_u.settings import VELA_FILE, Settings
from ferrule.backends.ethos_u.stream import operations, parse_payload
from ferrule.backends.ethos_u.vela import run_vela
from ferrule.backends.ethos_u.weight_decoder import WeightError, decode_slowly
from ferrule.backends.ethos_u.weight_order import Int16, WeightOrder, arranged
from ferrule.errors import FerruleError
from ferrule.formats import to_tflite

Bytes = npt.NDArray[np.uint8]
_KINDS = (
    *("conv", "conv16", "depthwise", "dense", "transpose_conv", "chain", "add", "sub16", "mul", "maximum"),
    *("max_pool", "average_pool", "average_pool16", "softmax", "softmax16", "logistic16", "tanh", "leaky_relu"),
    *("bilinear", "nearest", "mean", "sum", "arg_max", "mirror_pad", "transpose", "batch_matmul"),
)
_SETTINGS = {
    "ethos-u55-128": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "ethos-u65-512": ("Ethos_U65_Client_Server", "Dedicated_Sram_384KB"),
}
_CODES = (*range(0x14), *range(0x100, 0x140), *range(0x180, 0x190))
_LONG_CODES = (*range(0x0A), *range(0x10, 0x19), *range(0x20, 0x35), *range(0x80, 0x94))
_VALUES = (0, 1, 2, 3, 7, 8, 15, 16, 63, 127, 128, 255, 256, 1023, 0x7FFF, 0x8000, 0xFFFF)
_PAYLOADS = (0, 1, 15, 16, 255, 4096, 65535, 1 << 20, 2**31 - 1, 2**31, 2**32 - 16, 2**32 - 1)
_GUARD_BYTES = 4096
_GUARD = 0xA5
_LIMIT = 20_000
_FIRST_WORD = 8
"""The first word behind the header that Vela writes."""


def vela_streams(name: str, kinds: Sequence[str]) -> list[CompiledStream]:
    """Return what Vela makes of one network of each kind, for an NPU of this name."""
    system, mode = _SETTINGS[name]
    settings = Settings(
        configuration=configuration(name), system_config=system, memory_mode=mode, config_file=VELA_FILE
    )
    models = [to_tflite(vela_case(kind, 1)) for kind in kinds]
    return [read_npz(result.npz) for result in run_vela(models, settings, timeout_s=300) if result.npz]


def _vela_seeds() -> list[CompiledStream]:
    """Return one stream of each kind for Ethos-U55 and, of some, for the two cores of Ethos-U65-512."""
    seeds = [*vela_streams("ethos-u55-128", _KINDS), *vela_streams("ethos-u65-512", _KINDS[:6])]
    assert len(seeds) > 25
    return seeds


@dataclass(slots=True)
class _Page:
    """Memory that ends in front of a page that cannot be accessed."""

    size_bytes: int
    _all: mmap.mmap

    @classmethod
    def of(cls, size_bytes: int) -> _Page:
        size_bytes = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        mapping = mmap.mmap(-1, size_bytes + mmap.PAGESIZE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        protect = ctypes.CDLL(None).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        assert protect(start + size_bytes, mmap.PAGESIZE, 0) == 0
        return cls(size_bytes, mapping)

    def last(self, size_bytes: int) -> Bytes:
        """Return the last bytes in front of the page."""
        return np.frombuffer(self._all, np.uint8, size_bytes, self.size_bytes - size_bytes)


class _Regions:
    """The regions of a stream: in front of each are bytes that nobody may write, and behind it a page that is not
    accessible.
    """

    def __init__(self, seeds: Sequence[CompiledStream]) -> None:
        sizes = zip(*map(_sizes, seeds), strict=True)
        self._pages = [_Page.of(max(of_region) + _GUARD_BYTES) for of_region in sizes]
        self._guards: list[Bytes] = []
        self._arrays: list[Bytes] = []

    def memory(self, stream: CompiledStream, scratch: bytes) -> ArrayMemory:
        """Return the memory in which a stream begins; the fast scratch is zero."""
        self._guards, self._arrays = [], []
        for page, size in zip(self._pages, _sizes(stream), strict=True):
            whole = page.last(size + _GUARD_BYTES)
            whole[:_GUARD_BYTES] = _GUARD
            self._guards.append(whole[:_GUARD_BYTES])
            self._arrays.append(whole[_GUARD_BYTES:])
        read_only, first, second = self._arrays
        read_only[:] = np.frombuffer(stream.read_only, np.uint8)
        first[:] = np.frombuffer(scratch, np.uint8)
        second[:] = 0
        visible = read_only.view()
        visible.flags.writeable = False
        return ArrayMemory({0: visible, 1: first} | ({2: second} if len(second) else {}))

    def contents(self, stream: CompiledStream) -> tuple[bytes, bytes]:
        """Return the two scratches; AssertionError if something outside of them has changed."""
        assert all((guard == _GUARD).all() for guard in self._guards), "bytes outside of the regions were written"
        read_only, first, second = (array.tobytes() for array in self._arrays)
        assert read_only == stream.read_only, "the read-only region was written"
        return first, second


def _sizes(stream: CompiledStream) -> tuple[int, int, int]:
    return len(stream.read_only), stream.scratch_bytes, stream.fast_scratch_bytes


def _swollen(choice: random.Random) -> list[int]:
    """Return commands for large extents in little memory: strides of 0, so that many elements share their bytes."""
    height, width, depth = (choice.choice((1, 16, 64, 256, 1024, 4096, 1 << 16)) for _ in range(3))
    kernel = choice.choice((1, 1, 3, 64)), choice.choice((1, 1, 3, 64))
    short = {Short.OFM_HEIGHT_M1: height, Short.OFM_WIDTH_M1: width, Short.OFM_DEPTH_M1: depth}
    short |= {Short.KERNEL_HEIGHT_M1: kernel[0], Short.KERNEL_WIDTH_M1: kernel[1]}
    if choice.random() < 0.7:
        short |= {Short.IFM_DEPTH_M1: depth}
    long: dict[Long, int] = {}
    for name in ("IFM", "IFM2", "OFM"):
        short |= {Short[f"{name}_{extent}_M1"]: 1 << 16 for extent in ("WIDTH0", "HEIGHT0", "HEIGHT1")}
        long |= dict.fromkeys((Long[f"{name}_STRIDE_{axis}"] for axis in "XYC"), choice.choice((0, 0, 0, 1)))
    words = [int(code) | (value - 1 & 0xFFFF) << 16 for code, value in short.items()]
    return words + [word for code, value in long.items() for word in (int(code) | 0x4000, value)]


def _damaged_words(words: list[int], choice: random.Random) -> list[int]:
    """Return a stream with changes that keep most of it valid: registers, payloads, operations, their order."""
    for _ in range(choice.choice((1, 1, 1, 2, 3, 6))):
        at = choice.randrange(len(words))
        if choice.random() < 0.05:
            words[at:at] = _swollen(choice)
        match choice.randrange(9):
            case 0:
                words[at] ^= 1 << choice.randrange(32)
            case 1:
                words[at] = words[at] & 0xFFFF | choice.choice(_VALUES) << 16
            case 2:
                words[at] = choice.choice((choice.choice(_PAYLOADS), choice.randrange(1 << 32)))
            case 3:
                words[at] = (words[at] + choice.choice((-1, 1, 16, -16, 1 << 16, -(1 << 16)))) & 0xFFFF_FFFF
            case 4:
                words[at:at] = [choice.choice(_CODES) | choice.choice(_VALUES) << 16]
            case 5:
                words[at:at] = [choice.choice(_LONG_CODES) | 0x4000, choice.choice(_PAYLOADS)]
            case 6:
                del words[at : at + choice.choice((1, 2, 8))]
            case 7:
                other = choice.randrange(len(words))
                words[at:at] = words[other : other + choice.choice((1, 2, 16))]
            case _:
                del words[at:]
        words = words or [0]
    return words


def _damaged_stream(stream: CompiledStream, choice: random.Random) -> CompiledStream:
    data, read_only = stream.payload, bytearray(stream.read_only)
    if choice.random() < 0.9:
        words = struct.unpack(f"<{len(data) // 4}I", data)[_FIRST_WORD:]
        data = payload(stream.configuration.register, tuple(_damaged_words(list(words), choice)))
    if choice.random() < 0.15:
        data = mutate(data, [data], choice)
    if choice.random() < 0.2 and read_only:
        for _ in range(choice.choice((1, 2, 8))):
            read_only[choice.randrange(len(read_only))] = choice.randrange(256)
    return CompiledStream(
        configuration=stream.configuration,
        payload=data,
        read_only=bytes(read_only),
        scratch_bytes=stream.scratch_bytes,
        fast_scratch_bytes=stream.fast_scratch_bytes,
        inputs=stream.inputs,
        outputs=stream.outputs,
    )


def _streams(folder: Path) -> Check:
    del folder
    seeds = _vela_seeds()
    regions = _Regions(seeds)

    def check(choice: random.Random) -> bool:
        stream = _damaged_stream(choice.choice(seeds), choice)
        scratch, checks_hazards = choice.randbytes(stream.scratch_bytes), choice.random() < 0.3
        results = []
        for native in (True, False):
            npu = Npu(
                stream.configuration, regions.memory(stream, scratch), check_hazards=checks_hazards, native=native
            )
            started = time.process_time()
            figures = _figures(npu, stream.payload)
            assert time.process_time() - started < TIME_LIMIT_S, "it took longer than the limit"
            results.append((figures, regions.contents(stream)))
        (fast, fast_memory), (slow, slow_memory) = results
        assert fast == slow, f"C: {fast}, numpy: {slow}"
        if fast_memory != slow_memory:
            assert _overwrites_itself(stream), "C and numpy leave different memory"
        return fast is not None

    return check


def _figures(npu: Npu, data: bytes) -> tuple[int, ...] | None:
    """Return what is known of an execution; None if the stream is refused."""
    with refused():
        try:
            steps = npu.run(parse_payload(data))
        except (StreamError, NpuBusError):
            raise
        except Exception as error:
            raise AssertionError(f"an error that is not documented: {error!r}") from error
        hazards = sum(len(each.hazards) for each in steps)
        return len(steps), sum(each.macs for each in steps), steps[-1].operation.word_offset, hazards
    return None


def _overwrites_itself(stream: CompiledStream) -> bool:
    """Return whether elements of an OFM share their bytes: which of them remains is not defined."""
    with contextlib.suppress(FerruleError):
        for operation in operations(parse_payload(stream.payload).words):
            ofm = getattr(prepared(operation, stream.configuration), "ofm", None)
            if ofm is not None and _shares_bytes(ofm):
                return True
    return False


def _shares_bytes(ofm: FeatureMap) -> bool:
    size = ofm.dtype.itemsize
    channel = np.arange(ofm.depth)
    within = channel // ofm.brick * ofm.stride_c + channel % ofm.brick * size
    places = []
    for tile in ofm.tiles:
        rows, columns = np.arange(tile.y1 - tile.y0) * ofm.stride_y, np.arange(tile.x1 - tile.x0) * ofm.stride_x
        places.append((tile.base + rows[:, None, None] + columns[:, None] + within).ravel())
    return bool((np.diff(np.sort(np.concatenate(places))) < size).any())


def _outcome(decode: object, *arguments: object) -> Int16 | None:
    try:
        return decode(*arguments)  # type: ignore[operator,no-any-return]
    except WeightError:
        return None


def _random_order(choice: random.Random) -> WeightOrder:
    return WeightOrder(
        ofm_depth=choice.randint(1, 20),
        ifm_depth=choice.randint(1, 40),
        kernel_height=choice.randint(1, 4),
        kernel_width=choice.randint(1, 4),
        ofm_block_depth=choice.randint(1, 24),
        ofm_ublock_depth=choice.choice((4, 8)),
        ifm_ublock_depth=8,
        ifm_bits=choice.choice((8, 16)),
        part_kernel=choice.random() < 0.5,
        depthwise=choice.random() < 0.3,
    )


def _weights(folder: Path) -> Check:
    del folder
    from ethosu import mlw_codec

    native = NativeDecoder(library())
    seeds = [bytes(mlw_codec.encode(random_weights(np.random.default_rng(seed), 400).tolist())) for seed in range(200)]
    source, target = _Page.of(1 << 16), _Page.of(2 * _LIMIT)

    def check(choice: random.Random) -> bool:
        data = damaged_weights(seeds, choice)
        limit = choice.choice((1, choice.randint(1, 500), _LIMIT))
        blob, out = source.last(len(data)), target.last(2 * limit).view(np.int16)
        blob[:] = np.frombuffer(data, np.uint8)
        slow = _outcome(decode_slowly, data, limit)
        fast = _outcome(lambda: out[: native.fill(out, blob)])
        assert (slow is None) == (fast is None), "one decoder refuses the stream"
        if slow is None or fast is None:
            return False
        assert np.array_equal(slow, fast), "the decoders differ"
        order = _random_order(choice)
        if order.count <= len(fast):
            assert np.array_equal(native.arranged(fast, order), arranged(slow, order)), f"the order differs: {order}"
        return True

    return check


_ran: list[str] = []


def _explode(name: str) -> None:
    _ran.append(name)


class _Hostile:
    """An object whose pickle calls a function."""

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return _explode, ("a pickle",)


def _changed_fields(choice: random.Random) -> dict[str, object]:
    fields: dict[str, object] = dict(npz_fields())
    hostile = np.empty(1, object)
    hostile[0] = _Hostile()
    fields["input_quantization"] = hostile
    for _ in range(choice.choice((0, 1, 1, 2))):
        name = choice.choice(list(fields))
        size = (choice.choice((0, 1, 2, 300)), choice.choice((1, 6)))
        fields[name] = choice.choice((
            hostile,
            np.full(size, choice.choice((0, 1, 8, -1, 2**31, 2**62)), np.int64),
            choice.choice((0, 1, 2, 64, -1, 2**40)),
            choice.randbytes(choice.choice((0, 4, 64))),
            np.array(choice.choice(("text", 1.5, True, 1j))),
            np.zeros(3, [("a", "<i4")]),
        ))  # fmt: skip
        if choice.random() < 0.1:
            del fields[name]
    return fields


def _members(fields: dict[str, object]) -> Iterator[tuple[str, bytes]]:
    for name, value in fields.items():
        member = io.BytesIO()
        np.save(member, np.asanyarray(value), allow_pickle=True)
        yield f"{name}.npy", member.getvalue()


def _npz(folder: Path) -> Check:
    file = folder / "x.npz"
    _ran.clear()

    def check(choice: random.Random) -> bool:
        stream = io.BytesIO()
        method = choice.choice((zipfile.ZIP_STORED,) * 5 + (zipfile.ZIP_DEFLATED,) * 4 + (zipfile.ZIP_BZIP2,))
        with zipfile.ZipFile(stream, "w", method) as archive:
            for name, member in _members(_changed_fields(choice)):
                archive.writestr(name, mutate(member, [member], choice) if choice.random() < 0.03 else member)
        data = stream.getvalue()
        if choice.random() < 0.4:
            data = mutate(data, [data], choice)
        if choice.random() < 0.3:  # the archive's table is at its end
            turned = mutate(data[::-1], [data], choice)
            data = turned[::-1]
        file.write_bytes(data)
        with refused():
            try:
                found = read_npz(file)
            finally:
                assert not _ran, "a pickle of the file has run"
            for tensor in (*found.inputs, *found.outputs, *found.states):
                sizes = {1: found.scratch_bytes, 2: found.fast_scratch_bytes}
                assert tensor.offset + tensor.size_bytes <= sizes[tensor.region]
            return True
        return False

    return check


def _needs_vela() -> None:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")


def _needs_vela_and_cc() -> None:
    _needs_vela()
    require_cc()


TARGETS = (
    Target(
        name="ethos-u-stream",
        share=0.03,
        prepare=_streams,
        rate=600,
        limit_s=3 * TIME_LIMIT_S,
        needs=_needs_vela_and_cc,
    ),
    Target(name="ethos-u-weights", share=0.03, prepare=_weights, rate=600, needs=_needs_vela_and_cc),
    Target(name="ethos-u-npz", share=0.02, prepare=_npz, rate=400),
)
