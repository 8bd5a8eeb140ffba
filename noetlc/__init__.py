"""noetlc: the compiler toolchain for NoETL playbooks. Importing it costs nothing; each command imports what it needs."""

__version__ = "0.1.0"
