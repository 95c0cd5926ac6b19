# SPDX-License-Identifier: Apache-2.0
"""The functions of float32 compared with float64: the error bounds that ferrule/kernels/math.h states."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import lacking, require_module
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from ferrule.resources import root

pytestmark = pytest.mark.cc

Floats = NDArray[np.float32]
Function = Callable[[NDArray[Any]], NDArray[Any]]

UNARY = ("exp", "tanh", "expm1", "log", "sqrt", "sin", "cos")
SOURCES = ("exp.c", "expf.c", "tanhf.c", "expm1f.c", "logf.c", "sqrtf.c", "trigonometry.c", "fmodf.c")
DECLARATIONS = [f"void {name}_all(const float *x, float *y, int n)" for name in UNARY]
DECLARATIONS.append("void fmod_all(const float *x, float *y, int n)")
HARNESS = '#include "ferrule/kernels/math.h"\n' + "\n".join(
    f"{line} {{ for (int i = 0; i < n; ++i) y[i] = ferrule_{name}f({argument}); }}"
    for line, name, argument in zip(
        DECLARATIONS, (*UNARY, "fmod"), (*["x[i]"] * len(UNARY), "x[2 * i], x[2 * i + 1]"), strict=True
    )
)
EXP_OF_DOUBLES = "void exp_of_doubles(const double *x, double *y, int n)"
HARNESS += f"\n{EXP_OF_DOUBLES} {{ for (int i = 0; i < n; ++i) y[i] = ferrule_exp(x[i]); }}"
FLAGS = {"separate": ("-ffp-contract=off",), "fused": ("-ffp-contract=fast", "-mfma")}


@pytest.fixture(scope="module", params=FLAGS)
def functions(
    request: pytest.FixtureRequest, host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Function]:
    require_module("cffi", "pip install ferrule[run]")
    from cffi import FFI

    cpu = Path("/proc/cpuinfo")
    if request.param == "fused" and not (cpu.exists() and " fma " in cpu.read_text(encoding="utf-8")):
        lacking("a processor with fused multiply-add", "run the tests on one", rare=True)
    kernels = root() / "src_c" / "kernels"
    library = tmp_path_factory.mktemp("math") / "math.so"
    sources = [str(kernels / "math" / name) for name in SOURCES]
    command = [*host_cc, "-std=c11", "-O2", "-shared", "-fPIC", *FLAGS[request.param], f"-I{kernels / 'include'}"]
    subprocess.run([*command, *sources, "-x", "c", "-", "-o", str(library)], input=HARNESS, text=True, check=True)
    ffi = FFI()
    ffi.cdef("".join(f"{line};" for line in (*DECLARATIONS, EXP_OF_DOUBLES)))
    compiled = ffi.dlopen(str(library))

    def wrap(name: str) -> Function:
        def call(x: Floats) -> Floats:
            count = x.size // (2 if name == "fmod_all" else 1)
            x, y = np.ascontiguousarray(x, np.float32), np.empty(count, np.float32)
            getattr(compiled, name)(ffi.cast("const float *", x.ctypes.data), ffi.cast("float *", y.ctypes.data), count)
            return y

        return call

    def exp_of_doubles(x: NDArray[Any]) -> NDArray[Any]:
        y = np.empty_like(x)
        compiled.exp_of_doubles(ffi.cast("const double *", x.ctypes.data), ffi.cast("double *", y.ctypes.data), x.size)
        return y

    return {**{name: wrap(f"{name}_all") for name in (*UNARY, "fmod")}, "exp of doubles": exp_of_doubles}


def between(low: float, high: float) -> Floats:
    """Return every float32 from low to high, both of the same sign."""
    first, last = sorted(int(np.float32(value).view(np.uint32)) for value in (low, high))
    return np.arange(first, last + 1, dtype=np.uint32).view(np.float32)


def errors(got: Floats, exact: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the errors in units of float32's spacing at the exact results."""
    exponent = np.frexp(exact)[1]
    unit = np.ldexp(1.0, np.where(exact == 0, -149, np.maximum(exponent - 24, -149)))
    return np.abs(got.astype(np.float64) - exact) / unit


def exp_error(function: Function, x: Floats) -> float:
    with np.errstate(over="ignore"):
        exact = np.exp(x.astype(np.float64))
    got = function(x)
    overflow = exact >= 2.0**128 - 2.0**103
    assert np.array_equal(np.isposinf(got), overflow)
    return float(errors(got[~overflow], exact[~overflow]).max(initial=0.0))


def tanh_error(function: Function, x: Floats) -> float:
    got = function(x)
    assert np.array_equal(np.signbit(got), np.signbit(x))
    assert (np.abs(got) <= 1).all()
    return float(errors(got, np.tanh(x.astype(np.float64))).max())


BOUNDS = {"expm1": 1.02, "log": 0.84, "sin": 0.83, "cos": 0.83, "sqrt": 0.5}
"""The errors in ULP that the header states; those of nearly all values were measured once."""
CRITICAL = {
    "expm1": [(-0.36, -0.2), (-1.06, -1.02), (-17.6, -17.2), (-1e-42, -0.0)],
    "log": [(0.99, 1.01), (1.40, 1.42), (0.70, 0.71), (1e-45, 1e-41), (1.17e-38, 1.18e-38)],
    "sin": [(0.78, 0.79), (2.3, 2.4), (3.14, 3.15), (6.28, 6.29), (1.5e22, 1.6e22)],
    "cos": [(0.78, 0.79), (1.57, 1.58), (2.3, 2.4), (4.71, 4.72), (1.5e22, 1.6e22)],
    "sqrt": [(0.99, 1.01), (1e-45, 1e-41), (3.4e38, 3.4028235e38)],
}


def error_of(functions: dict[str, Function], name: str, x: Floats) -> float:
    """Return the greatest error; NaN, infinities and the signs of zeros must be right."""
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
    got = functions[name](x)
    assert_array_equal(np.isnan(got), np.isnan(exact))
    assert_array_equal(got[~np.isfinite(exact)], exact[~np.isfinite(exact)].astype(np.float32))
    zeros = exact == 0
    assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))
    return float(errors(got[np.isfinite(exact)], exact[np.isfinite(exact)]).max(initial=0.0))


@pytest.mark.parametrize("name", BOUNDS)
def test_the_other_functions_of_all_of_float32_in_strides(functions: dict[str, Function], name: str) -> None:
    x = np.arange(0, 2**32, 20011, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([x, np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, 1e-45], np.float32)])
    assert error_of(functions, name, x[~(x > 0)] if name == "expm1" else x) <= BOUNDS[name]


@pytest.mark.parametrize("name", BOUNDS)
def test_critical_ranges_of_the_other_functions(functions: dict[str, Function], name: str) -> None:
    for low, high in CRITICAL[name]:
        assert error_of(functions, name, between(low, high)[::7]) <= BOUNDS[name]


def test_remainders_are_exact(functions: dict[str, Function]) -> None:
    drawn = np.random.default_rng(5).integers(0, 2**32, (4000, 2), np.uint64).astype(np.uint32)
    drawn[::2, 1] = drawn[::2, 0] - (drawn[::2, 1] >> 4)  # numbers of similar magnitude
    drawn[::5] &= np.uint32(0x80FFFFFF)  # denormal and small numbers
    special = [0.0, -0.0, 1.0, -1.5, 1e-45, np.inf, -np.inf, np.nan, 3.4028235e38]
    pairs = np.concatenate([drawn.view(np.float32), np.array([(a, b) for a in special for b in special], np.float32)])
    with np.errstate(all="ignore"):
        wanted = np.fmod(pairs[:, 0], pairs[:, 1])
    got = functions["fmod"](pairs)
    assert_array_equal(got, wanted)
    numbers = ~np.isnan(wanted)
    assert_array_equal(np.signbit(got[numbers]), np.signbit(wanted[numbers]))


def test_all_of_float32_in_strides(functions: dict[str, Function]) -> None:
    # the stride is odd, so that all low bits of the significand vary
    x = np.arange(0, 2**32, 2003, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = x[~np.isnan(x)]
    assert exp_error(functions["exp"], x) < 1
    assert tanh_error(functions["tanh"], x) < 1.5


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (88.0, 89.5),  # overflow
        (-88.0, -87.0),  # the smallest normal numbers
        (-104.5, -103.0),  # the smallest denormal numbers
        (-0.36, -0.34),  # the ends of the reduced interval
        (0.34, 0.36),
        (5.0, 5.4),
        (-5.4, -5.0),
        (0.0, 1e-42),
        (-1e-42, -0.0),
    ],
)
def test_every_value_of_exps_critical_ranges(functions: dict[str, Function], low: float, high: float) -> None:
    assert exp_error(functions["exp"], between(low, high)) < 1


@pytest.mark.parametrize(
    ("low", "high"), [(0.99e-4, 1.01e-4), (0.6, 0.66), (-0.66, -0.6), (8.9, 9.3), (0.0, 1e-42), (-1e-42, -0.0)]
)
def test_every_value_of_tanhs_critical_ranges(functions: dict[str, Function], low: float, high: float) -> None:
    assert tanh_error(functions["tanh"], between(low, high)) < 1.5


def test_special_values(functions: dict[str, Function]) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38], np.float32)
    exp, tanh = functions["exp"](x), functions["tanh"](x)
    assert np.array_equal(exp, np.array([np.inf, 0, np.nan, 1, 1, np.inf, 0]), equal_nan=True)
    assert np.array_equal(tanh, np.array([1, -1, np.nan, 0, 0, 1, -1]), equal_nan=True)


def test_the_exponential_of_doubles_is_near_that_of_more_digits(functions: dict[str, Function]) -> None:
    x = np.concatenate([np.random.default_rng(8).uniform(-708, 709, 20000), np.linspace(-1, 1, 5001)])
    got, exact = functions["exp of doubles"](x), np.exp(x.astype(np.longdouble))
    if np.finfo(np.longdouble).nmant <= np.finfo(np.float64).nmant:
        lacking("a long double with more digits than a double", "run the tests on an x86", rare=True)
    assert float((np.abs(got - exact) / np.spacing(exact.astype(np.float64))).max()) < 1
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 720.0, -800.0, 1e300])
    with np.errstate(over="ignore"):
        assert_array_equal(functions["exp of doubles"](special), np.exp(special))
