# SPDX-License-Identifier: Apache-2.0
"""`ferrule generate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import echo
from ferrule.cli.options import (
    ClassOptions,
    JobOptions,
    arena_option,
    class_options,
    job_options,
    models_argument,
    names_option,
    platform_option,
)
from ferrule.cli.parameters import PATH, flag, option, typed
from ferrule.cli.reading import ReadingOptions, reading_options
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.firmware import Kept
    from ferrule.network import Network


@click.command("generate")
@models_argument
@job_options()
@class_options
@names_option("With --target: the name of the class and its files.  [default: AclArtifact]")
@arena_option
@reading_options()
@platform_option("The platform of the project: bare metal or an RTOS.")
@flag(
    "--library",
    "A library for your own build instead of a firmware: sources, headers, a CMake package, lists for make and "
    "others. With --platform bare-metal, cmsis, freertos or threadx, it has that platform's device adapter.",
)
@option(
    "--app",
    "Bare metal: what the firmware does. link serves a host of Ferrule's, calibration does so with micro-programs "
    "(docs/calibrate.md), mlperf-tiny (or mlperf-tiny:kws01) serves the runner of MLPerf Tiny (docs/mlperf_tiny.md).",
    default="link",
    metavar="APP",
)
@flag("--force", "Replace generated files even if you have edited them; your version is kept as NAME.orig.")
@option(
    "--emit-renode",
    "Also write a platform description (.repl), a script (.resc) and a Robot test to this folder, which run the "
    "project with Renode alone.",
    "renode",
    kind=PATH,
    metavar="DIR",
)
@option("--out", "The project's folder.", kind=PATH, required=True)
@click.pass_context
def command(
    context: click.Context,
    models: tuple[Path, ...],
    options: JobOptions,
    classes: ClassOptions,
    names: tuple[str, ...],
    arena: str,
    reading: ReadingOptions,
    platform: str,
    library: bool,
    app: str,
    force: bool,
    renode: Path | None,
    out: Path,
) -> None:
    """Write a self-contained firmware project for MODEL (.tflite, .onnx or .pt2), with --library a library, or with
    --target a C++ class.

    Several models become one firmware, with one library and each device once; the link serves all of them.

    A folder that already contains such a project is updated, except for files meant for editing, such as main.c, that
    you have changed. Any other folder that is not empty is refused.
    """
    from ferrule import running

    classes.refuse_without_target()
    if classes.target is not None:
        for parameter, given in typed(context).items():
            if parameter not in _CLASS_OPTIONS:
                raise FerruleError(f"{given} is not valid with --target, which makes no firmware")
        if len(models) > 1 or len(names) > 1:
            raise FerruleError("--target makes a class from one model, with one --name")
        (model,) = models
        (network,) = reading.load([model])
        _write_class(network, classes, *names, out=out, force=force)
        return
    if library:
        platform = _library_platform(typed(context), platform)
    networks = reading.load(models, names)
    job = options.job(platform=platform, arena=arena, app=app, out=out)
    project = running.generate(networks, job, force=force, renode=renode)
    echo(f"{project.folder}: {len(project.manifest.files)} files; build it with: {project.build_hint}")
    if renode is not None:
        echo(f"{renode}: after the build, run it with: renode {renode / 'ferrule.resc'}")
    for note in project.notes:
        echo(f"note: {note}")
    for kept in project.kept:
        echo(_kept(kept))


def _write_class(network: Network, classes: ClassOptions, name: str = "AclArtifact", *, out: Path, force: bool) -> None:
    from ferrule import running

    assert classes.target is not None
    options = classes.acl()
    project = running.generate_acl(
        network,
        classes.target,
        out,
        name=name,
        acl_version=options.version,
        float16=options.float16,
        force=force,
    )
    echo(f"{project.folder}: {len(project.files)} files; build and compare it with: ferrule artifact run {out}")
    for kept in project.kept:
        echo(_kept(kept))


def _library_platform(given: Mapping[str, str], platform: str) -> str:
    """Return the name of the library's platform; FerruleError if an option of firmware was given; see `typed`."""
    from ferrule.firmware import LIBRARIES, LIBRARY

    for name in ("toolchain", "renode"):
        if name in given:
            raise FerruleError(f"{given[name]} is not valid with --library, which your own build compiles")
    name = f"{LIBRARY}-{platform}" if "platform" in given else LIBRARY
    if name not in LIBRARIES:
        raise FerruleError(
            f"there is no library with an adapter for {platform}",
            hint=f"a project for {platform} is a module for your own application: leave out --library",
        )
    return name


_CLASS_OPTIONS = {
    *ReadingOptions.__dataclass_fields__,
    *ClassOptions.__dataclass_fields__,
    *("models", "names", "force", "out"),
}


def _kept(kept: Kept) -> str:
    if kept.beside is None:
        return f"{kept.name}: edited by you, left unchanged"
    if kept.beside.startswith(f"{kept.name}.orig"):
        return f"{kept.name}: edited by you, renamed to {kept.beside}"
    return f"{kept.name}: edited by you, left unchanged; {kept.beside} has the newly generated contents"
