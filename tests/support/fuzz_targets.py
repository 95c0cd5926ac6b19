# SPDX-License-Identifier: Apache-2.0
"""All targets of the fuzz campaigns."""

from __future__ import annotations

import fuzz_data
import fuzz_ethos_u
import fuzz_files
import fuzz_models
import fuzz_onnx
import fuzz_peers
from fuzzing import Target

TARGETS: tuple[Target, ...] = (
    *fuzz_files.TARGETS,
    *fuzz_data.TARGETS,
    *fuzz_ethos_u.TARGETS,
    *fuzz_onnx.TARGETS,
    *fuzz_peers.TARGETS,
    *fuzz_models.TARGETS,
)
