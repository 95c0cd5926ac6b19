# SPDX-License-Identifier: Apache-2.0
"""The options with which commands write their results as files of many formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ferrule._frozen import frozen, positional
from ferrule.cli.console import STDOUT, console, echo_document, log_safe
from ferrule.cli.parameters import PATH, Option, collected, flag, option
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.report.base import Document

report_option = option("--json", "Write the report to this file as JSON; - for stdout.", kind=PATH)
JOB_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable that names the file of a job's summary on hosted runners."""


@positional
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
        "html",
        _CHECKED | {"inspection", "quantization"},
        "Write a page to look at, in one file that needs no network.",
        failures=True,
    ),
    _Form(
        "csv",
        _CHECKED | {"inspection", "quantization"},
        "Write a table: a row per layer, metric, run of a sweep, or change; - for stdout.",
    ),
    _Form(
        "markdown",
        _CHECKED | {"inspection", "quantization"},
        "Write a summary as Markdown; - for stdout.",
        failures=True,
    ),
    _Form(
        "node-data",
        frozenset({"run", "inspection", "evaluation"}),
        "Write node data for Model Explorer into this folder, a file per counter.",
        folder=True,
        of_board=True,
    ),
    _Form(
        "trace",
        frozenset({"run", "evaluation"}),
        "Write the timeline as a Chrome JSON trace, for Perfetto or Speedscope; - for stdout.",
        of_board=True,
    ),
    _Form(
        "junit",
        _CHECKED,
        "Write the verdicts as JUnit XML, also if the command fails; - for stdout.",
        failures=True,
    ),
    _Form(
        "sarif",
        _CHECKED,
        "Write what is wrong as SARIF 2.1.0, also if the command fails; - for stdout.",
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
        from ferrule.cli.arrays import require_writable

        taken: dict[Path, str] = {}
        for name, path in self.paths.items():
            option, is_folder = f"--{name}", name in _FOLDERS
            place = path if path == STDOUT else path.absolute()
            if place != STDOUT:
                require_writable(option, path, folder=is_folder)
            elif is_folder:
                raise FerruleError(f"{option} -: it is several files, expected a folder")
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

    def write(
        self, documents: Sequence[Document], *, models: Sequence[Path] = (), made: bool = True, quiet: bool = False
    ) -> None:
        """Write the files of one document, or of one for each model of a firmware, and print them unless `quiet`.

        Every file is complete or as it was before; if a format cannot be written, no file is. `models` are the
        documents' model files, which SARIF names. `made` states whether this command has made the documents, which
        then have it.

        Raises:
            FerruleError: a document lacks what a format shows, or a file cannot be written.
        """
        from ferrule.report.console import print_report
        from ferrule.report.naming import of_file, shared_name

        if models:
            named = [shared_name(model) for model in models]
            documents = [of_file(document, file) for document, file in zip(documents, named, strict=True)]
        if self:
            self._write([_with_command(each) for each in documents] if made else documents, list(self.paths))
        for each in () if quiet or self.takes_stdout else documents:
            print_report(each, console())

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
        from ferrule.scratch import writing

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
                with writing(self.paths[name]) as folder:
                    folder.mkdir(exist_ok=True)
        for path, text in files.items():
            if path != STDOUT:
                save(path, text.encode())
        if summary is not None:
            with writing(_summary_file()) as file, file.open("a", encoding="utf-8") as stream:
                stream.write(summary)
        if STDOUT in files:
            json = self.paths.get("json") == STDOUT
            echo_document(log_safe(files[STDOUT]) if json else files[STDOUT])


def _with_command(document: Document) -> Document:
    from ferrule.cli.command_line import this_command
    from ferrule.report.surroundings import with_commands

    return with_commands(document, this_command())


def outputs_options(kind: str) -> Option:
    """Add the options of the formats that fit the documents of a kind, passed as one argument `results`.

    `kind` is that of the document, or `ALL`. An inspection's --json is a flag, which prints.
    """
    forms = [form for form in _FORMS if kind in {*form.kinds, ALL}]

    def outputs(*, job_summary: bool = False, **typed: Path | Literal[True] | None) -> Outputs:
        found = {name.replace("_", "-"): STDOUT if path is True else path for name, path in typed.items() if path}
        return Outputs(paths=found, job_summary=job_summary)

    summary = flag("--job-summary", f"Append the summary to the file that {JOB_SUMMARY} names, as hosted runners do.")
    files = (
        option(
            f"--{form.name}",
            form.help,
            kind=click.Path(path_type=Path, file_okay=not form.folder),
            metavar="FOLDER" if form.folder else "FILE",
        )
        for form in forms
    )
    if kind == "inspection":
        json = flag("--json", "Print JSON.")
        return collected("results", outputs, json, *files)
    return collected("results", outputs, report_option, *files, summary)


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
