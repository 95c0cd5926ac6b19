# SPDX-License-Identifier: Apache-2.0
"""Headers of the kernels, as the host library reads them."""

from __future__ import annotations

import pytest
from needs import require_module

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.host.library import declarations

HEADERS = sorted(
    path.relative_to(folder).as_posix()
    for folder in KERNELS.include_paths
    for path in folder.rglob("*.h")
    if not path.name.endswith(".inc.h")
)


@pytest.mark.parametrize("header", HEADERS)
def test_cffi_reads_each_header(header: str) -> None:
    """Enumerators are numbers, and types that depend on macros belong in files `.inc.h`."""
    require_module("cffi", "pip install ferrule[run]")
    from cffi import FFI

    FFI().cdef(declarations([header], KERNELS.include_paths))
