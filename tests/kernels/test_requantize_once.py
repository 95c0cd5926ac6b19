# SPDX-License-Identifier: Apache-2.0
"""The C of the rules with one rounding, native, compared with `fixed_point.rescale`."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import rescale
from ferrule.resources import root

pytestmark = pytest.mark.cc

RULES = (Rounding.SINGLE, Rounding.ONNX)
HARNESS = '#include "ferrule/kernels/requantize_once.h"\n' + "".join(
    f"""void {rule.value}(const int32_t *x, const int32_t *m, const int32_t *s, int32_t *y, int n)
    {{ for (int i = 0; i < n; ++i) y[i] = ferrule_requantize_{rule.value}(x[i], m[i], s[i]); }}
    void {rule.value}_any(const int32_t *x, const int32_t *m, const int32_t *s, int32_t *y, int n)
    {{ for (int i = 0; i < n; ++i) y[i] = ferrule_requantize_{rule.value}_any(x[i], m[i], s[i]); }}
    """
    for rule in RULES
)
LIMIT = 255
"""Results are stated up to this magnitude, see the header."""
Compiled = Callable[[str, Array, Array, Array], Array]


@pytest.fixture(scope="module", params=["-DFERRULE_SHORT_MULTIPLY=0", "-DFERRULE_SHORT_MULTIPLY=1"])
def compiled(
    request: pytest.FixtureRequest, host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Compiled:
    kernels = root() / "src_c" / "kernels"
    path = tmp_path_factory.mktemp("once") / "once.so"
    flags = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", request.param)
    sources = (f"-I{kernels / 'include'}", str(kernels / "requantize_once.c"), "-x", "c", "-", "-o", str(path))
    subprocess.run([*host_cc, *flags, *sources], input=HARNESS, text=True, check=True)
    library = ctypes.CDLL(str(path))

    def call(name: str, sums: Array, multipliers: Array, shifts: Array) -> Array:
        arrays = [np.ascontiguousarray(array, np.int32) for array in (sums, multipliers, shifts, np.zeros_like(sums))]
        getattr(library, name)(*(ctypes.c_void_p(array.ctypes.data) for array in arrays), ctypes.c_int(sums.size))
        return arrays[3].astype(np.int64)

    return call


def factors_of(real: Array, rule: Rounding) -> tuple[Array, Array]:
    """Return the multipliers and shifts of real factors in the rule's precision, as `quantize_multiplier` has them."""
    values = real.astype(np.float32).astype(np.float64) if rule is Rounding.ONNX else real
    fractions, shifts = np.frexp(values)
    multipliers = np.floor(fractions * 2.0**31 + 0.5).astype(np.int64)
    whole = multipliers == 1 << 31
    multipliers, shifts = np.where(whole, 1 << 30, multipliers), np.where(whole, shifts + 1, shifts).astype(np.int64)
    return np.where(shifts < -31, 0, multipliers), np.where(shifts < -31, 0, shifts)


def hard_values(count: int, rule: Rounding, seed: int) -> tuple[Array, Array, Array]:
    """Return sums, multipliers and shifts with results of all sizes, half of them near a half or exactly on it."""
    rng = np.random.default_rng(seed)
    sums = np.ldexp(rng.uniform(-1, 1, count), rng.integers(1, 32, count)).astype(np.int64)
    real = np.exp2(rng.uniform(-40, 20, count))
    halves = rng.integers(-260, 261, count) + 0.5
    # A sum that reaches a half with the factor, a factor that reaches it with the sum, and powers of two.
    kind = rng.integers(0, 6, count)
    power = np.exp2(rng.integers(-40, 21, count))
    real = np.where(kind == 0, power, real)
    reached = np.clip(np.rint(halves / real), -(2**31), 2**31 - 1).astype(np.int64)
    nearby = np.clip(reached + rng.integers(-2, 3, count), -(2**31), 2**31 - 1)
    sums = np.where(kind <= 1, nearby, sums)
    to_half = np.abs(halves / np.where(sums == 0, 1, sums))
    possible = (kind == 2) & (to_half > 2.0**-40) & (to_half < 2.0**20)
    steps = 1 + rng.integers(-2, 3, count) * 2.0 ** (-23 if rule is Rounding.ONNX else -30)
    real = np.where(possible, to_half * steps, real)
    ends = np.array([-(2**31), 2**31 - 1, 0, 1, -1, 2**24, 2**24 + 1, -(2**24) - 3])
    sums = np.where(kind == 5, rng.choice(ends, count), sums)
    return (sums, *factors_of(real, rule))


def check(compiled: Compiled, rule: Rounding, values: tuple[Array, Array, Array]) -> None:
    wanted = rescale(*values, rule)
    for name, within in ((f"{rule.value}_any", 1 << 30), (rule.value, LIMIT)):
        assert_array_equal(compiled(name, *values).clip(-within, within), wanted.clip(-within, within))
    assert np.abs(compiled(rule.value, *values)).max() <= 1 << 30


@pytest.mark.parametrize("rule", RULES)
def test_every_factor_and_sum_gives_the_result_of_the_rule(compiled: Compiled, rule: Rounding) -> None:
    check(compiled, rule, hard_values(500_000, rule, 1))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("rule", RULES)
def test_many_factors_and_sums(compiled: Compiled, rule: Rounding, seed: int) -> None:
    check(compiled, rule, hard_values(1_000_000, rule, seed))


@pytest.mark.parametrize("rule", RULES)
def test_neighbours_of_each_half_of_a_factor(compiled: Compiled, rule: Rounding) -> None:
    rng = np.random.default_rng(3)
    halves = np.arange(-255, 256) + 0.5
    for shift in range(-23, -1):
        multipliers, shifts = factors_of(np.exp2(rng.uniform(shift - 1, shift, 30))[:, None], rule)
        real = np.ldexp(multipliers.astype(np.float64), shifts - 31)
        near = np.rint(halves / real)[..., None] + np.arange(-1, 2)
        sums = near.clip(-(2**31), 2**31 - 1).astype(np.int64)
        every = np.broadcast_arrays(sums, multipliers[..., None], shifts[..., None])
        check(compiled, rule, tuple(array.reshape(-1) for array in every))


def test_the_rules_differ_on_halves_and_beyond_24_bits() -> None:
    half = np.int64(5), np.int64(1 << 30), np.int64(0)
    assert [int(rescale(*half, rule)) for rule in RULES] == [3, 2]
    sums, multipliers, shifts = hard_values(200_000, Rounding.ONNX, 4)
    single, onnx = (rescale(sums, multipliers, shifts, rule).clip(-LIMIT, LIMIT) for rule in RULES)
    beyond = np.abs(sums) >= 1 << 24
    assert (single != onnx)[beyond].any()
    assert (single != onnx)[~beyond].any()
