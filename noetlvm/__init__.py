"""noetlvm: the virtual machine for NoETL playbooks. Importing it costs nothing; both packages have this version."""

__version__ = "0.1.0"
