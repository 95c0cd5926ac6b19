# SPDX-License-Identifier: Apache-2.0
"""Files of Ethos-U as Vela writes them, made without Vela, and random weights with damage to their streams."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

CONFIG_U55_128 = 0x1807
STOP = 0xFFFF_0000
_ID = 0x1006_6001


def payload(config: int = CONFIG_U55_128, words: tuple[int, ...] = (STOP,)) -> bytes:
    """Return a stream of commands with the header that Vela writes."""
    head = (0x0010_0001, config, _ID, 5, 5, 5, 2 | (len(words) >> 16 & 0xFF) << 8 | (len(words) & 0xFFFF) << 16)
    return b"COP1" + struct.pack(f"<{len(head) + len(words)}I", *head, *words)


def npz_fields() -> dict[str, Any]:
    """Return the arrays of a raw file of Vela, with one input, one output and pickled quantisations."""
    quantization = np.empty(1, object)
    quantization[0] = {"quant_type": "per_tensor", "scale": np.ones(1, np.float32)}
    return {
        "cmd_data": payload(),
        "weight_data": bytes(range(32)) + bytes(16),
        "weight_region": 0,
        "scratch_shape": [64],
        "scratch_region": 1,
        "scratch_size": 64,
        "scratch_fast_shape": [0],
        "scratch_fast_region": 0,
        "scratch_fast_size": 0,
        "input_shape": [[1, 1, 1, 2, 4, 3]],
        "input_elem_size": [1],
        "input_region": [1],
        "input_offset": [16],
        "output_shape": [[1, 1, 1, 1, 1, 5]],
        "output_elem_size": [4],
        "output_region": [1],
        "output_offset": [0],
        "variable_shape": [],
        "variable_elem_size": [],
        "variable_region": [],
        "variable_offset": [],
        "input_quantization": quantization,
        "output_quantization": quantization,
        "variable_quantization": [],
    }


def npz_bytes(**changes: object) -> bytes:
    """Return a raw file with some arrays exchanged."""
    stream = io.BytesIO()
    np.savez(stream, **(npz_fields() | changes))
    return stream.getvalue()


def random_weights(choice: np.random.Generator, most: int = 3000) -> npt.NDArray[np.int16]:
    """Return up to `most` weights of one to three of the kinds that reach the different codings of a stream."""
    return np.concatenate([_one_kind(choice, most // 3) for _ in range(choice.integers(1, 4))]).astype(np.int16)


def _one_kind(choice: np.random.Generator, most: int) -> npt.NDArray[Any]:
    count = int(choice.integers(1, most + 1))
    match choice.integers(5):
        case 0:
            return choice.integers(-255, 256, count)
        case 1:
            return np.clip(np.rint(choice.normal(0, choice.choice([1, 5, 30]), count)), -255, 255)
        case 2:
            return np.where(choice.random(count) < choice.random(), 0, choice.integers(-127, 128, count))
        case 3:
            return choice.choice(choice.integers(-255, 256, choice.integers(1, 20)), count)
        case _:
            return np.where(choice.random(count) < 0.99, 0, choice.integers(-3, 4, count))


def damaged_weights(seeds: Sequence[bytes], choice: random.Random) -> bytes:
    """Return a weight stream with some bits changed, mostly in its first header, or cut off, or followed by another."""
    data = bytearray(choice.choice(seeds))
    for _ in range(choice.randint(1, 3)):
        match choice.randrange(5):
            case 0 | 1:
                data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)
            case 2:
                data[choice.randrange(min(6, len(data)))] = choice.randrange(256)
            case 3:
                del data[choice.randrange(len(data)) + 1 :]
            case _:
                other = choice.choice(seeds)
                data += other[choice.randrange(len(other)) :]
    return bytes(data)
