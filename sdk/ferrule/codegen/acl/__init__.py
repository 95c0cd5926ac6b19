# SPDX-License-Identifier: Apache-2.0
"""C++ classes over the Arm Compute Library: a network becomes a class, and a file with its parameters (S4)."""

from ferrule.codegen.acl.generate import (
    AclArtifact,
    ArtifactRecord,
    TensorRecord,
    explain_class,
    generate_class,
    output_problems,
    read_record,
)
from ferrule.codegen.acl.rows import DEFAULT_VERSION, AclOptions
from ferrule.codegen.acl.support import VERSIONS, LayerUse, supported
from ferrule.codegen.acl.table import accuracy
from ferrule.codegen.acl.targets import TARGETS, AclTarget, acl_target

__all__ = [
    "DEFAULT_VERSION",
    "TARGETS",
    "VERSIONS",
    "AclArtifact",
    "AclOptions",
    "AclTarget",
    "ArtifactRecord",
    "LayerUse",
    "TensorRecord",
    "accuracy",
    "acl_target",
    "explain_class",
    "generate_class",
    "output_problems",
    "read_record",
    "supported",
]
