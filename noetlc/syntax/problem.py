"""Problems found by reading and parsing. A problem is a fact; the rule of its kind turns it into a finding."""

from __future__ import annotations

from enum import StrEnum

from noetlc.syntax.span import Span
from noetlvm.record import Record


class ProblemKind(StrEnum):
    """Each kind is reported by one rule."""

    NOT_UTF8 = "not-utf8"
    YAML_SYNTAX = "yaml-syntax"
    TOO_LARGE = "too-large"
    EMPTY = "empty"
    MANY_DOCUMENTS = "many-documents"
    DUPLICATE_KEY = "duplicate-key"
    TAG = "tag"
    ALIAS = "alias"
    COMPLEX_KEY = "complex-key"
    NON_STRING_KEY = "non-string-key"
    MERGE_VALUE = "merge-value"
    UNKNOWN_KEY = "unknown-key"
    WRONG_TYPE = "wrong-type"


class Problem(Record):
    """One problem at one place."""

    kind: ProblemKind
    span: Span
    message: str
    help: str
    object: str = ""
    """Grammar rule of the object that contains it, such as `step`."""
    key: str = ""
    """The key concerned, if there is one."""
    suggestion: str = ""
    """The known name that was probably meant."""
    other: Span | None = None
    """A second place: the first of two duplicates."""
