# SPDX-License-Identifier: Apache-2.0
"""The errors of files of data that cannot be read, or are of another form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ferrule.errors import InputError
from ferrule.reading import near_names


@contextmanager
def input_errors(where: str | Path, wrong: str, *kinds: type[Exception], hint: str | None = None) -> Iterator[None]:
    """Turn the errors of a file's reader into InputErrors, which begin with `where`.

    `kinds` are those by which the reader says that the file is not what it should be; `wrong` and their reason follow.
    """
    try:
        yield
    except OSError as error:
        near = near_names(where) if isinstance(where, Path) and isinstance(error, FileNotFoundError) else None
        raise InputError(f"{where} cannot be read: {error.strerror or error}", hint=near) from error
    except UnicodeError as error:
        raise InputError(f"{where} is not UTF-8: {error}", hint=hint) from error
    except kinds as error:
        reason = str(error).partition("\n")[0] or "it ends too early"
        raise InputError(f"{where} {wrong}: {reason}", hint=hint) from error
