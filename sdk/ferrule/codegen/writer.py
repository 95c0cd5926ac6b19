# SPDX-License-Identifier: Apache-2.0
"""The interface of the writers, which spell modules of the document model in a language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from ferrule.dom import Declaration, Module, Type


class Writer(ABC):
    """A language in which generated programs are written."""

    language: ClassVar[str]
    """Its name, as in messages."""
    header_suffix: ClassVar[str]
    """The end of the names of headers."""
    source_suffix: ClassVar[str]
    """The end of the names of sources."""

    @abstractmethod
    def header(self, module: Module, banner: str) -> str:
        """Return the header of a module; `banner` is the text of its first comment.

        Raises:
            UnsupportedError: the module contains a node that the language lacks.
            FerruleError: a name is not an identifier of the language.
        """

    @abstractmethod
    def source(self, module: Module, banner: str) -> str:
        """Return the source of a module, as `header` does."""

    @abstractmethod
    def declarations(self, items: Iterable[Declaration]) -> str:
        """Return only the definitions, for inclusion in another source."""

    @abstractmethod
    def declared(self, type_: Type, name: str = "") -> str:
        """Return the declaration of `name` with a type, or just the type if `name` is empty."""

    def files(self, module: Module, banner: str) -> dict[str, str]:
        """Return the header and the source of a module by file name."""
        return {
            f"{module.name}{self.header_suffix}": self.header(module, banner),
            f"{module.name}{self.source_suffix}": self.source(module, banner),
        }
