# SPDX-License-Identifier: Apache-2.0
"""Firmware: toolchains, builds, linker scripts and the resulting images."""

from ferrule.firmware.build import BuildError, TooLargeError, execute
from ferrule.firmware.folder import Kept
from ferrule.firmware.image import Group, Image, Section, Segment, StackBound, Symbol, read_image
from ferrule.firmware.job import DEFAULT_BOARD, SEPARATE, SHARED, Job, JobKeywords, divide, divide_all, job_from
from ferrule.firmware.linker import linker_script
from ferrule.firmware.manifest import Manifest
from ferrule.firmware.placement import emit, emit_program, emit_together, place_devices
from ferrule.firmware.plan import (
    BuildPlan,
    CompileStep,
    LinkStep,
    SourceSet,
    plan_build,
)
from ferrule.firmware.planned_time import PlannedLayer, PlannedTime, planned_time
from ferrule.firmware.platforms import (
    DEFAULT_PLATFORM,
    LIBRARIES,
    LIBRARY,
    PLATFORMS,
    Platform,
    ProjectFiles,
    ProjectRequest,
    platform,
    probe_platforms,
)
from ferrule.firmware.platforms.tools import require_tools
from ferrule.firmware.probe import ToolStatus, probe_tools
from ferrule.firmware.project import (
    BuiltFirmware,
    Project,
    StackTooSmallError,
    build_project,
    load_project,
    make_firmware,
    write_project,
)
from ferrule.firmware.toolchain import (
    DEFAULT_TOOLCHAIN,
    TOOLCHAINS,
    WARNINGS,
    GccToolchain,
    Optimization,
    Toolchain,
    ZigToolchain,
    toolchain,
    ziglang_program,
)
from ferrule.firmware.wires import WireUse, spare_uarts, wires

__all__ = [
    "DEFAULT_BOARD",
    "DEFAULT_PLATFORM",
    "DEFAULT_TOOLCHAIN",
    "LIBRARIES",
    "LIBRARY",
    "PLATFORMS",
    "SEPARATE",
    "SHARED",
    "TOOLCHAINS",
    "WARNINGS",
    "BuildError",
    "BuildPlan",
    "BuiltFirmware",
    "CompileStep",
    "GccToolchain",
    "Group",
    "Image",
    "Job",
    "JobKeywords",
    "Kept",
    "LinkStep",
    "Manifest",
    "Optimization",
    "PlannedLayer",
    "PlannedTime",
    "Platform",
    "Project",
    "ProjectFiles",
    "ProjectRequest",
    "Section",
    "Segment",
    "SourceSet",
    "StackBound",
    "StackTooSmallError",
    "Symbol",
    "TooLargeError",
    "ToolStatus",
    "Toolchain",
    "WireUse",
    "ZigToolchain",
    "build_project",
    "divide",
    "divide_all",
    "emit",
    "emit_program",
    "emit_together",
    "execute",
    "job_from",
    "linker_script",
    "load_project",
    "make_firmware",
    "place_devices",
    "plan_build",
    "planned_time",
    "platform",
    "probe_platforms",
    "probe_tools",
    "read_image",
    "require_tools",
    "spare_uarts",
    "toolchain",
    "wires",
    "write_project",
    "ziglang_program",
]
