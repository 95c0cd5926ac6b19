# SPDX-License-Identifier: Apache-2.0
"""The options with which commands write their results as files of many formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ferrule._frozen import frozen
from ferrule.cli.console import STDOUT, echo_document, log_safe
from ferrule.cli.parameters import PATH, collected, flag, option
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.report.base import Document

_F = TypeVar("_F", bound=Callable[..., Any])

report_option = option("--json", "Write the report to this file as JSON; - for stdout.", "json_path", kind=PATH)
JOB_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable that names the file of a job's summary on hosted runners."""


@frozen
class _Form:
    """A format, and the option that asks for it."""

    name: str
    """Of the writer, and of the option."""
    kinds: frozenset[str]
    """The documents for which commands offer it."""
    help: str
    folder: bool = False
    """Whether it is a folder of files."""
    failures: bool = False
    """Whether it is written if the command fails, too."""
    of_board: bool = False
    """Whether, of an evaluation, it shows nothing but the run on a board."""


_CHECKED = frozenset({"run", "evaluation", "sweep", "comparison"})
_FORMS = (
    _Form(
        name="html",
        kinds=_CHECKED | {"inspection"},
        help="Write a page to look at, in one file that needs no network.",
        failures=True,
    ),
    _Form(
        name="csv",
        kinds=_CHECKED | {"inspection"},
        help="Write a table: a row per layer, metric, run of a sweep, or change; - for stdout.",
    ),
    _Form(
        name="markdown",
        kinds=_CHECKED | {"inspection"},
        help="Write a summary as Markdown; - for stdout.",
        failures=True,
    ),
    _Form(
        name="node-data",
        kinds=frozenset({"run", "inspection", "evaluation"}),
        help="Write node data for Model Explorer into this folder, a file per counter.",
        folder=True,
        of_board=True,
    ),
    _Form(
        name="trace",
        kinds=frozenset({"run", "evaluation"}),
        help="Write the timeline as a Chrome JSON trace, for Perfetto or Speedscope; - for stdout.",
        of_board=True,
    ),
    _Form(
        name="junit",
        kinds=_CHECKED,
        help="Write the verdicts as JUnit XML, also if the command fails; - for stdout.",
        failures=True,
    ),
    _Form(
        name="sarif",
        kinds=_CHECKED,
        help="Write what is wrong as SARIF 2.1.0, also if the command fails; - for stdout.",
        failures=True,
    ),
)
_FOLDERS = frozenset(form.name for form in _FORMS if form.folder)
ALL = "document"
"""The kind for which every option is offered: that of a document that is read from a file."""


@frozen
class Outputs:
    """The files that a user asks for."""

    paths: Mapping[str, Path] = field(default_factory=dict)
    """By the name of the format."""
    job_summary: bool = False

    @property
    def takes_stdout(self) -> bool:
        """Whether one of them goes to standard output, where nothing else may be printed then."""
        return STDOUT in self.paths.values()

    def __bool__(self) -> bool:
        """Return whether anything is asked for."""
        return bool(self.paths) or self.job_summary

    def check(self) -> None:
        """Raise FerruleError, before anything is built, if a file cannot be written or has two formats."""
        taken: dict[Path, str] = {}
        for name, path in self.paths.items():
            option = f"--{name}"
            if name in _FOLDERS:
                _require_folder(option, path)
                place = path.absolute()
            elif path == STDOUT:
                place = path
            else:
                from ferrule.cli.arrays import require_writable

                require_writable(option, path)
                place = path.absolute()
            if place in taken:
                raise FerruleError(f"{option} {path}: {taken[place]} writes to it already")
            taken[place] = option
        if self.job_summary:
            _summary_file()

    def check_board(self, *, named: bool) -> None:
        """Raise FerruleError if one of an evaluation's files needs a run on a board, and no board is named."""
        needing = [f"--{form.name}" for form in _FORMS if form.of_board and form.name in self.paths]
        if needing and not named:
            raise FerruleError(
                f"{needing[0]}: it shows the run on a board, and no board is named",
                hint="--board, or board = ... in ferrule.toml",
            )

    def write(self, documents: Sequence[Document], *, models: Sequence[Path] = (), made: bool = True) -> None:
        """Write the files of one document, or of one for each model of a firmware.

        Every file is complete or as it was before; if a format cannot be written, no file is. `models` are the
        documents' model files, which SARIF names. `made` states whether this command has made the documents, which
        then have it.

        Raises:
            FerruleError: a document lacks what a format shows, or a file cannot be written.
        """
        if not self:
            return
        from ferrule.report.naming import of_file, shared_name

        if models:
            named = [shared_name(model) for model in models]
            documents = [of_file(document, file) for document, file in zip(documents, named, strict=True)]
        self._write([_with_command(each) for each in documents] if made else documents, list(self.paths))

    @contextmanager
    def failures(
        self, command: str, models: Sequence[Path], *, board: str = "", engine: str = "", faults: Sequence[str] = ()
    ) -> Iterator[None]:
        """Write a FerruleError that leaves the block in the formats that can state it, and raise it on."""
        try:
            yield
        except FerruleError as error:
            names = [form.name for form in _FORMS if form.failures and form.name in self.paths]
            if names or self.job_summary:
                from ferrule.report.failure_document import failure_document
                from ferrule.report.naming import shared_name

                document = failure_document(
                    error,
                    command=command,
                    models=tuple(map(shared_name, models)),
                    board=board,
                    engine=engine,
                    faults=tuple(faults),
                )
                try:
                    self._write([_with_command(document)], names)
                except FerruleError as second:
                    click.echo(f"warning: the failure is not written to a file: {second}", err=True)
            raise

    def _write(self, documents: Sequence[Document], names: Sequence[str]) -> None:
        from ferrule.cli.arrays import save
        from ferrule.report.writers import FOLDERS, WRITERS

        files: dict[Path, str] = {}
        for name in names:
            path = self.paths[name]
            if name in FOLDERS:
                files |= {path / file: text for file, text in FOLDERS[name](documents).items()}
            else:
                files[path] = WRITERS[name](documents)
        summary = WRITERS["job-summary"](documents) if self.job_summary else None
        for name in names:
            if name in FOLDERS:
                _make_folder(self.paths[name])
        for path, text in files.items():
            if path != STDOUT:
                save(path, text.encode())
        if summary is not None:
            _append(_summary_file(), summary)
        if STDOUT in files:
            json = self.paths.get("json") == STDOUT
            echo_document(log_safe(files[STDOUT]) if json else files[STDOUT])


def _with_command(document: Document) -> Document:
    from ferrule.cli.command_line import this_command
    from ferrule.report.surroundings import with_commands

    return with_commands(document, this_command())


def outputs_options(kind: str) -> Callable[[_F], _F]:
    """Add the options of the formats that fit the documents of a kind, passed as one argument `results`.

    `kind` is that of the document, or `ALL`. An inspection's --json is a flag, which prints.
    """
    forms = [form for form in _FORMS if kind in {*form.kinds, ALL}]

    def outputs(**typed: Any) -> Outputs:  # noqa: ANN401 click's types
        json = typed["json_path"]
        wanted = {"json": STDOUT if json is True else json or None}
        wanted |= {form.name: typed[_parameter(form)] for form in forms}
        paths = {name: path for name, path in wanted.items() if path is not None}
        return Outputs(paths=paths, job_summary=typed.get("job_summary", False))

    summary = flag("--job-summary", f"Append the summary to the file that {JOB_SUMMARY} names, as hosted runners do.")
    files = (
        option(
            f"--{form.name}",
            form.help,
            _parameter(form),
            kind=click.Path(path_type=Path, file_okay=not form.folder),
            metavar="FOLDER" if form.folder else "FILE",
        )
        for form in forms
    )
    if kind == "inspection":
        json = flag("--json", "Print JSON.", "json_path")
        return collected("results", outputs, json, *files)
    return collected("results", outputs, report_option, *files, summary)


def _parameter(form: _Form) -> str:
    return f"{form.name.replace('-', '_')}_path"


def _require_folder(option: str, path: Path) -> None:
    """Raise FerruleError if a folder can neither be made nor written to."""
    if path == STDOUT:
        raise FerruleError(f"{option} -: it is several files, expected a folder")
    if not path.absolute().parent.is_dir():
        raise FerruleError(f"{option} {path}: there is no folder {path.absolute().parent}")
    if path.exists() and not path.is_dir():
        raise FerruleError(f"{option} {path}: is a file, expected a folder")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise FerruleError(f"{option} {path}: cannot be written")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise FerruleError(f"{path} cannot be written: {error.strerror or error}") from error


def _summary_file() -> Path:
    """Return the file of the job's summary; FerruleError if there is none, or it cannot be written."""
    named = os.environ.get(JOB_SUMMARY)
    if not named:
        raise FerruleError(
            f"--job-summary: {JOB_SUMMARY} is not set, so that there is no job to summarise",
            hint="use --markdown FILE outside of a hosted runner",
        )
    from ferrule.cli.arrays import require_writable

    require_writable(f"{JOB_SUMMARY}:", Path(named))
    return Path(named)


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise FerruleError(f"{path} cannot be written: {error.strerror or error}") from error
