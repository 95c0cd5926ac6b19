# SPDX-License-Identifier: Apache-2.0
"""Weights: the decoders in C and in Python against Arm's encoder and decoder, the order, and the cache."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from pathlib import Path

import children
import numpy as np
import pytest
from ethos_u_files import damaged_weights, random_weights
from fuzz_ethos_u import vela_streams
from fuzzing import numbers
from needs import require_cc, require_module, require_sanitizers

from ferrule.backends.ethos_u import native_weights, weight_decoder, weight_order, weights
from ferrule.backends.ethos_u.convolution import Convolution
from ferrule.backends.ethos_u.native_weights import NativeDecoder, library
from ferrule.backends.ethos_u.npu import ArrayMemory, prepared
from ferrule.backends.ethos_u.stream import operations, parse_payload
from ferrule.backends.ethos_u.weight_decoder import WeightError, decode_slowly
from ferrule.backends.ethos_u.weight_order import Int16, WeightOrder
from ferrule.backends.ethos_u.weights import WeightCache
from ferrule.errors import MissingToolError

LIMIT = 20_000


@pytest.fixture(scope="module")
def native() -> NativeDecoder:
    require_cc()
    return NativeDecoder(library())


@pytest.fixture(scope="module")
def codec() -> object:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")
    from ethosu import mlw_codec

    return mlw_codec


def encoded(codec: object, values: Int16) -> bytes:
    return bytes(codec.encode(values.tolist()))  # type: ignore[attr-defined]


def test_random_weights_against_arms_encoder_and_decoder(native: NativeDecoder, codec: object) -> None:
    kinds = set()
    for seed in range(60):
        values = random_weights(np.random.default_rng(seed))
        data = encoded(codec, values)
        expected = np.array(codec.decode(bytearray(data)), np.int16)  # type: ignore[attr-defined]
        assert np.array_equal(expected[: len(values)], values)
        assert np.array_equal(native.decode(np.frombuffer(data, np.uint8), 1 << 20), expected)
        assert np.array_equal(decode_slowly(data, 1 << 20), expected)
        kinds.add((data[0] & 7, data[2] >> 2 & 7, data[2] >> 5 & 1))
    # the divisor of zero runs, that of weights, and the short form: most of what the format has occurs
    assert {zeros for zeros, _, _ in kinds} >= {0, 3, 6}
    assert {divisor for _, divisor, _ in kinds} >= {0, 1, 2, 3, 5, 7}
    assert {short for _, _, short in kinds} == {0, 1}


def test_a_limit_returns_the_first_weights(native: NativeDecoder, codec: object) -> None:
    choice = np.random.default_rng(2)
    for _ in range(20):
        data = encoded(codec, random_weights(choice))
        expected = decode_slowly(data, 1 << 20)
        limit = int(choice.integers(1, len(expected) + 1))
        assert np.array_equal(decode_slowly(data, limit), expected[:limit])
        assert np.array_equal(native.decode(np.frombuffer(data, np.uint8), limit), expected[:limit])


def test_no_weights(native: NativeDecoder) -> None:
    for data in (b"", b"\xff", b"\xff" * 16):
        assert len(decode_slowly(data, LIMIT)) == len(native.decode(np.frombuffer(data, np.uint8), LIMIT)) == 0


def outcome(function: object, *arguments: object) -> Int16 | None:
    try:
        return function(*arguments)  # type: ignore[operator,no-any-return]
    except WeightError:
        return None


def test_damaged_streams_are_refused_by_both_or_have_the_same_weights(native: NativeDecoder, codec: object) -> None:
    seeds = [encoded(codec, random_weights(np.random.default_rng(seed), 400)) for seed in range(30)]
    results = []
    for index in range(1500):
        data = damaged_weights(seeds, numbers(1, "weights", index))
        slow, fast = outcome(decode_slowly, data, LIMIT), outcome(native.decode, np.frombuffer(data, np.uint8), LIMIT)
        assert (slow is None) == (fast is None), index
        assert slow is None or np.array_equal(slow, fast), index
        results.append(slow is None)
    assert 200 < sum(results) < 1300


def _bits(*fields: tuple[int, int]) -> bytes:
    value = at = 0
    for field, width in fields:
        value |= field << at
        at += width
    return value.to_bytes(-(-at // 8), "little")


HEADER = ((6, 3), (0, 15))  # no zero runs, one weight


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_bits((6, 16)), "ends inside of a slice"),
        (_bits(*HEADER, (0, 3), (0, 1), (0, 1), (0, 40)), "begins without a palette"),
        (_bits((7, 8), *HEADER, (0, 3), (0, 1), (0, 1), (0, 40)), "begins without a palette"),
        (_bits(*HEADER, (6, 3), (0, 1), (1, 1), (0, 13), (0, 90)), "divisor"),
        (_bits(*HEADER, (7, 3), (0, 1), (1, 1), (31, 5), (0, 5), (7, 3), (511, 9), (0, 90)), "magnitude"),
        (_bits(*HEADER, (7, 3), (0, 1), (1, 1), (0, 5), (0, 5), (7, 3)), "ends inside of a slice"),
    ],
)
def test_each_kind_of_damage_is_named(native: NativeDecoder, data: bytes, message: str) -> None:
    for decoder in (decode_slowly, lambda blob, limit: native.decode(np.frombuffer(blob, np.uint8), limit)):
        with pytest.raises(WeightError, match=message):
            decoder(data, LIMIT)


def test_a_run_of_zeros_beyond_any_memory_is_cut(native: NativeDecoder) -> None:
    # a palette, zero runs with 5 bits of remainder, of which the first has a quotient of 8 * 30,000
    ones = 8 * 30_000
    head = _bits((5, 3), (0, 15), (7, 3), (0, 1), (1, 1), (0, 5), (0, 5), (0, 3))
    assert (8 * len(head) - 36) == 4
    data = (int.from_bytes(head, "little") | ((1 << ones) - 1) << 36).to_bytes(ones // 8 + 100, "little")
    assert len(decode_slowly(data, LIMIT)) == len(native.decode(np.frombuffer(data, np.uint8), LIMIT)) == LIMIT
    assert len(native.decode(np.frombuffer(data, np.uint8), 1 << 23)) > 31 * ones


def _random_order(choice: random.Random) -> WeightOrder:
    return WeightOrder(
        ofm_depth=choice.randint(1, 40),
        ifm_depth=choice.randint(1, 70),
        kernel_height=choice.randint(1, 12),
        kernel_width=choice.randint(1, 12),
        ofm_block_depth=choice.randint(1, 40),
        ofm_ublock_depth=choice.choice((4, 8)),
        ifm_ublock_depth=8,
        ifm_bits=choice.choice((8, 16)),
        part_kernel=choice.random() < 0.5,
        depthwise=choice.random() < 0.4,
        dilation_height=choice.randint(1, 2),
        dilation_width=choice.randint(1, 2),
    )


def test_orders_in_c_and_in_numpy(native: NativeDecoder) -> None:
    choice = numbers(1, "weights", 3)
    for _ in range(50):
        order = _random_order(choice)
        places = weight_order.places(order)
        assert len(places) == order.count
        assert set(places.tolist()) - {-1} == set(range(int(np.prod(order.shape))))
        stream = np.random.default_rng(0).integers(-255, 256, order.count).astype(np.int16)
        assert np.array_equal(native.arranged(stream, order), weight_order.arranged(stream, order)), order


def test_orders_against_arms_encoder(codec: object) -> None:
    choice = numbers(1, "weights", 4)
    for _ in range(60):
        order = _random_order(choice)
        values = np.random.default_rng(1).integers(-127, 128, order.shape).astype(np.int16)
        ohwi = tuple(order.shape)
        data, _ = codec.reorder_encode(  # type: ignore[attr-defined]
            order.ifm_ublock_depth,
            order.ofm_ublock_depth,
            values,
            order.ofm_block_depth,
            order.depthwise,
            order.is_part_kernel,
            order.ifm_bits,
            order.tile_height,
            order.tile_width,
        )
        found = weights.weights(bytes(data), order)
        assert found.shape == ohwi
        assert np.array_equal(found, values), order


def test_weights_in_streams_of_vela(codec: object, native: NativeDecoder) -> None:
    found = 0
    for stream in vela_streams("ethos-u55-128", ("conv", "conv16", "depthwise", "dense", "transpose_conv")):
        memory = ArrayMemory({0: np.frombuffer(stream.read_only, np.uint8), 1: np.zeros(1 << 20, np.uint8)})
        for operation in operations(parse_payload(stream.payload).words):
            kernel = prepared(operation, stream.configuration)
            for core in kernel.cores if isinstance(kernel, Convolution) else ():
                if core.weights.region != 0:
                    continue  # it is copied by DMA first
                data = memory.view(core.weights)
                expected = np.array(codec.decode(bytearray(data)), np.int16)  # type: ignore[attr-defined]
                assert np.array_equal(native.decode(data, 1 << 20), expected)
                assert np.array_equal(decode_slowly(bytes(data), 1 << 20), expected)
                assert len(expected) == core.order.count
                found += 1
    assert found >= 4


def test_an_operation_with_too_many_or_too_few_weights(codec: object, native: NativeDecoder) -> None:
    order = WeightOrder(
        ofm_depth=16, ifm_depth=32, kernel_height=1, kernel_width=1, ofm_block_depth=8, ofm_ublock_depth=8,
        ifm_ublock_depth=8,
    )  # fmt: skip
    data = encoded(codec, np.ones(511, np.int16))
    with pytest.raises(WeightError, match="has 511 weights, and its operation needs 512"):
        weights.weights(data, order)
    with pytest.raises(WeightError, match="cannot be arranged"):
        native.arranged(np.zeros(511, np.int16), order)
    large = WeightOrder(
        ofm_depth=65536, ifm_depth=65536, kernel_height=65536, kernel_width=65536, ofm_block_depth=1,
        ofm_ublock_depth=8, ifm_ublock_depth=8,
    )  # fmt: skip
    with pytest.raises(WeightError, match="and at most 33,554,432 are supported"):
        weights.weights(data, large)


def test_without_a_compiler_the_decoder_in_python_is_used(
    codec: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lack(*_: object) -> None:
        raise MissingToolError("no C compiler for this host was found")

    order = _random_order(numbers(1, "weights", 5))
    data = encoded(codec, np.arange(order.count, dtype=np.int16) % 100)
    expected = weights.weights(data, order)
    monkeypatch.setattr(native_weights, "library", lack)
    native_weights.native_decoder.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert np.array_equal(weights.weights(data, order), expected)
    finally:
        native_weights.native_decoder.cache_clear()
    assert len(caplog.records) == 1
    assert "decoded in Python" in caplog.text
    assert "no C compiler" in caplog.text


def test_the_cache_is_bounded_and_keeps_what_was_used_last(codec: object) -> None:
    order = WeightOrder(
        ofm_depth=8, ifm_depth=32, kernel_height=1, kernel_width=1, ofm_block_depth=8, ofm_ublock_depth=8,
        ifm_ublock_depth=8,
    )  # fmt: skip
    blobs = [encoded(codec, np.full(256, value, np.int16)) for value in range(4)]
    cache = WeightCache(limit_bytes=3 * 512)
    arrays = [cache.weights(blob, order) for blob in blobs[:3]]
    assert cache.weights(np.frombuffer(blobs[0], np.uint8), order) is arrays[0]
    cache.weights(blobs[3], order)
    assert (len(cache), cache.size_bytes) == (3, 3 * 512)
    assert cache.weights(blobs[0], order) is arrays[0]
    assert cache.weights(blobs[1], order) is not arrays[1]
    assert np.array_equal(cache.weights(blobs[1], order), arrays[1])
    with pytest.raises(ValueError, match="read-only"):
        arrays[0][0] = 1


def test_the_cache_keeps_nothing_above_its_limit(codec: object) -> None:
    order = WeightOrder(
        ofm_depth=8, ifm_depth=32, kernel_height=1, kernel_width=1, ofm_block_depth=8, ofm_ublock_depth=8,
        ifm_ublock_depth=8,
    )  # fmt: skip
    data = encoded(codec, np.arange(256, dtype=np.int16) - 128)
    small = WeightCache(limit_bytes=100)
    assert len(small.weights(data, order)) == 8
    assert (len(small), small.size_bytes) == (0, 0)


SANITIZER_FLAGS = (
    *("-fsanitize=address,undefined", "-fsanitize-undefined-trap-on-error", "-fno-omit-frame-pointer", "-O1"),
)
SANITIZED = """
import sys
import numpy as np
from ethos_u_files import damaged_weights
from fuzzing import numbers
from ferrule.backends.ethos_u.native_weights import NativeDecoder, library
from ferrule.backends.ethos_u.weight_decoder import WeightError
native = NativeDecoder(library(*sys.argv[1:]))
seeds = [bytes.fromhex(line) for line in sys.stdin.read().split()]
refused = 0
for index in range(3000):
    data = np.frombuffer(damaged_weights(seeds, numbers(1, "weights", index)), np.uint8).copy()
    try:
        native.decode(data, 1 << 20)
        native.decode(data, numbers(1, "weights", index).randrange(3000))
    except WeightError:
        refused += 1
print(refused)
"""


def test_damaged_streams_under_the_sanitizers(codec: object) -> None:
    support = Path(damaged_weights.__code__.co_filename).parent
    environment = children.environment(support, **require_sanitizers("address"))
    seeds = [encoded(codec, random_weights(np.random.default_rng(seed), 300)).hex() for seed in range(20)]
    done = subprocess.run(
        [sys.executable, "-c", SANITIZED, *SANITIZER_FLAGS],
        input="\n".join(seeds),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert 300 < int(done.stdout) < 2700


def test_the_reference_is_not_the_decoder_in_c() -> None:
    assert "native" not in Path(weight_decoder.__file__).read_text(encoding="utf-8").replace("the one in C", "")
