# SPDX-License-Identifier: Apache-2.0
"""The functions of generated headers that convert real numbers: their bits are those of TensorInfo.quantize."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import signal_networks
import small_networks
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import require_cc, require_cxx
from numpy.testing import assert_array_equal

from ferrule import DataType, Network, Quantization, TensorInfo, resources
from ferrule.firmware import Job, emit
from ferrule.graph import Array

pytestmark = pytest.mark.cc

INCLUDE = resources.root() / "include"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Wshadow", "-Wpedantic", "-Werror")
TYPES = {DataType.INT8: "s8", DataType.UINT8: "u8", DataType.INT16: "s16", DataType.INT32: "s32"}
C_TYPES = {DataType.INT8: "int8_t", DataType.UINT8: "uint8_t", DataType.INT16: "int16_t", DataType.INT32: "int32_t"}
POINTERS = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38], np.float32)


def compiled(source: Path, text: str, compiler: tuple[str, ...], *options: str) -> ctypes.CDLL:
    """Compile C or C++ without a library and load it; it fails if the code needs a library."""
    source.write_text(text, encoding="utf-8")
    library = source.with_suffix(".so")
    flags = ("-ffreestanding", "-nostdlib", "-fPIC", "-shared", "-Wl,-z,defs", "-I", str(INCLUDE))
    subprocess.run([*compiler, *options, *WARNINGS, *flags, "-o", str(library), str(source)], check=True, timeout=60)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def arithmetic(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the functions of include/ferrule/quantize.h, each with another name."""
    calls = "".join(
        f"void q_{suffix}(const float *r, {stored} *s, size_t n, int32_t zero, float scale)\n"
        f"{{\n    ferrule_real_to_{suffix}(r, s, n, zero, scale);\n}}\n"
        f"void d_{suffix}(const {stored} *s, float *r, size_t n, int32_t zero, float scale)\n"
        f"{{\n    ferrule_{suffix}_to_real(s, r, n, zero, scale);\n}}\n"
        for suffix, stored in ((TYPES[dtype], C_TYPES[dtype]) for dtype in TYPES)
    )
    source = tmp_path_factory.mktemp("arithmetic") / "arithmetic.c"
    return compiled(source, f'#include "ferrule/quantize.h"\n{calls}', require_cc(), "-std=c11", "-O2")


def called(library: ctypes.CDLL, name: str, given_values: Array, result: Array, info: TensorInfo) -> Array:
    function = getattr(library, name)
    function.argtypes = (*POINTERS, ctypes.c_int32, ctypes.c_float)
    values = np.ascontiguousarray(given_values)
    function(values.ctypes.data, result.ctypes.data, values.size, info.zero_point, info.scale)
    return result


def check_both_ways(library: ctypes.CDLL, dtype: DataType, scale: float, zero_point: int, values: Array) -> None:
    """Compare the C with Python: the stored values of floats, and the real numbers of these and of the limits."""
    info = TensorInfo("x", (1,), dtype, quantization=Quantization.of(scale, zero_point))
    wanted = np.full(values.shape, zero_point, dtype.numpy)
    known = ~np.isnan(values)
    wanted[known] = info.quantize(values[known])
    stored = called(library, f"q_{TYPES[dtype]}", values, np.empty(values.shape, dtype.numpy), info)
    assert_array_equal(stored, wanted)
    limits = np.iinfo(dtype.numpy)
    elements = np.concatenate([stored, np.array([limits.min, limits.max, zero_point], dtype.numpy)])
    real = called(library, f"d_{TYPES[dtype]}", elements, np.empty(elements.shape, np.float32), info)
    assert real.tobytes() == info.dequantize(elements).tobytes()


@pytest.mark.parametrize("dtype", TYPES)
@given(
    scale=st.floats(2.0**-149, 2.0**100, width=32),
    zero=st.integers(0, 2**32 - 1),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=20)
def test_c_gives_the_bits_of_python(
    arithmetic: ctypes.CDLL, dtype: DataType, scale: float, zero: int, seed: int
) -> None:
    limits = np.iinfo(dtype.numpy)
    zero_point = int(limits.min) + zero % (int(limits.max) - int(limits.min) + 1)
    random = np.random.default_rng(seed)
    steps = random.integers(-(2**17), 2**17, 500) * 0.5
    with np.errstate(over="ignore"):
        ties = (steps * scale).astype(np.float32)
        edges = ((np.arange(int(limits.min) - 2, int(limits.min) + 3) - zero_point) * scale).astype(np.float32)
    values = np.concatenate(
        [
            random.integers(0, 2**32, 1000, dtype=np.uint32).view(np.float32),
            ties,
            np.nextafter(ties, np.float32(np.inf)),
            np.nextafter(ties, np.float32(-np.inf)),
            edges,
            -edges,
            SPECIAL,
        ]
    )
    check_both_ways(arithmetic, dtype, scale, zero_point, values)


def test_halves_and_their_neighbours(arithmetic: ctypes.CDLL) -> None:
    values = np.array([0.5, -0.5, 0.49999997, -0.49999997, 1.5, -1.5, 2.5, 8388607.5, 8388608, 16777216], np.float32)
    for dtype in TYPES:
        for zero_point in (0, 5):
            check_both_ways(arithmetic, dtype, 1.0, zero_point, np.concatenate([values, SPECIAL]))


def several() -> Network:
    """Return a network with an input of each kind: quantised, real, and of whole numbers."""
    network = Network("several")
    kinds = (
        ("a", DataType.INT8, Quantization.of(0.1, -7)),
        ("b", DataType.INT16, Quantization.of(1e-40)),
        ("c", DataType.INT32, Quantization.of(3e8)),
        ("d", DataType.FLOAT32, None),
        ("e", DataType.INT32, None),
    )
    for name, dtype, quantization in kinds:
        network.add_input(TensorInfo(name, (2, 3), dtype, quantization=quantization))
    network.set_outputs([network.add_relu_layer("a", name="y"), "b", "c", "d", "e"])
    return network


def header_of(network: Network) -> tuple[str, str]:
    """Return the model's C name and its header."""
    artifact = emit(network, Job())
    return artifact.symbol, artifact.files[f"ferrule_{artifact.symbol}.h"]


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_header_converts_each_quantised_tensor(language: str, tmp_path: Path) -> None:
    network = several()
    symbol, header = header_of(network)
    assert re.findall(r"static inline void ferrule_several_(\w+)\(", header) == [
        *("quantize_a", "quantize_b", "quantize_c"),
        *("dequantize_y", "dequantize_b", "dequantize_c"),
    ]
    (tmp_path / f"ferrule_{symbol}.h").write_text(header, encoding="utf-8")
    wrappers = "".join(
        f"void in_{name}(const float *r, {stored} *s);\n"
        f"void in_{name}(const float *r, {stored} *s)\n"
        f"{{\n    ferrule_several_quantize_{name}(r, s, FERRULE_SEVERAL_INPUT_{name.upper()}_ELEMENTS);\n}}\n"
        f"void out_{name}(const {stored} *s, float *r);\n"
        f"void out_{name}(const {stored} *s, float *r)\n"
        f"{{\n    ferrule_several_dequantize_{output}(s, r, FERRULE_SEVERAL_OUTPUT_{output.upper()}_ELEMENTS);\n}}\n"
        for name, output, stored in (("a", "y", "int8_t"), ("b", "b", "int16_t"), ("c", "c", "int32_t"))
    )
    opening = '#include "ferrule_several.h"\n'
    if language == "c":
        library = compiled(tmp_path / "several.c", opening + wrappers, require_cc(), "-std=c11", "-I", str(tmp_path))
    else:
        text = f'{opening}extern "C" {{\n{wrappers}}}\n'
        library = compiled(tmp_path / "several.cpp", text, require_cxx(), "-std=c++11", "-I", str(tmp_path))
    real = np.array([0.05, -0.05, 1e30, -1e30, 1e-40, 5e8], np.float32)
    for name, info, output in zip("abc", network.inputs, network.outputs, strict=False):
        stored, again = np.empty(6, info.dtype.numpy), np.empty(6, np.float32)
        getattr(library, f"in_{name}")(ctypes.c_void_p(real.ctypes.data), ctypes.c_void_p(stored.ctypes.data))
        assert_array_equal(stored, info.quantize(real))
        getattr(library, f"out_{name}")(ctypes.c_void_p(stored.ctypes.data), ctypes.c_void_p(again.ctypes.data))
        assert again.tobytes() == output.dequantize(stored).tobytes()


def test_constants_state_scale_zero_point_and_elements() -> None:
    _, header = header_of(several())
    assert "#define FERRULE_SEVERAL_INPUT_A_SCALE 0.1f\n" in header
    assert "#define FERRULE_SEVERAL_INPUT_B_SCALE 1e-40f\n" in header
    assert "    FERRULE_SEVERAL_INPUT_A_ZERO_POINT = -7,\n" in header
    assert "    FERRULE_SEVERAL_INPUT_D_ELEMENTS = 6,\n" in header
    assert "INPUT_D_SCALE" not in header


def test_a_model_of_real_numbers_has_no_conversions() -> None:
    network = Network("real")
    network.add_input(TensorInfo("x", (1, 6), DataType.FLOAT32))
    network.set_outputs([network.add_relu_layer("x", name="y")])
    assert "quantize" not in header_of(network)[1]
    assert "quantize" not in header_of(signal_networks.preprocessor())[1]


@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os"])
def test_a_program_that_calls_none_does_not_contain_them(level: str, tmp_path: Path) -> None:
    symbol, header = header_of(small_networks.dense())
    assert "static inline void ferrule_dense_quantize_x(" in header
    objects = []
    for name, text in (("with", header), ("without", _without_conversions(header))):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"ferrule_{symbol}.h").write_text(text, encoding="utf-8")
        source, made = tmp_path / name / "user.c", tmp_path / name / "user.o"
        source.write_text('#include "ferrule_dense.h"\nint user(void)\n{\n    return 7;\n}\n', encoding="utf-8")
        # zig adds debug information, which names the folder
        argv = [*require_cc(), level, "-g0", "-std=c11", "-I", str(INCLUDE), "-c", "-o", made.name, source.name]
        subprocess.run(argv, cwd=made.parent, check=True, timeout=60)
        objects.append(made.read_bytes())
    assert objects[0] == objects[1]


def _without_conversions(header: str) -> str:
    start, end = header.index("/** The zero points"), header.rindex("#ifdef __cplusplus")
    return (
        header.replace('#include "ferrule/quantize.h"\n', "")[: start - len('#include "ferrule/quantize.h"\n')]
        + (header[end:])
    )
