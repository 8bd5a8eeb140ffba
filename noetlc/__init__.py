"""The compiler toolchain for NoETL playbooks. Importing it costs nothing; each command imports what it needs."""

from noetlvm import __version__

__all__ = ["__version__"]
