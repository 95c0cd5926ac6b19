# SPDX-License-Identifier: Apache-2.0
"""What surrounds a generated class over the Arm Compute Library: its project, its build, its runs, the comparison."""

from ferrule.acl.project import ArtifactProject, load_artifact, write_project

__all__ = ["ArtifactProject", "load_artifact", "write_project"]
