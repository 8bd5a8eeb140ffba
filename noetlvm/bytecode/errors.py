"""What can be wrong with a bundle. Malformed: it cannot be decoded. Invalid: it cannot be verified."""

from __future__ import annotations


class BundleError(Exception):
    """Base. One error with a code, a section, an offset and a reason; never anything else on account of a bundle."""

    def __init__(self, code: str, section: str, offset: int, reason: str) -> None:
        self.code = code
        self.section = section
        self.offset = offset
        self.reason = reason
        super().__init__(f"{code}: {section}, at {offset}: {reason}")


class MalformedBundleError(BundleError):
    """The bytes are no bundle that this version can decode; codes begin with M."""


class InvalidBundleError(BundleError):
    """The bundle decodes, but its code is not safe to run; codes begin with V."""
