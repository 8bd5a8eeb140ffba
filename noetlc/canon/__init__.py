"""The canonical form: the one shape of all playbooks that mean the same, as a syntax tree and printable as YAML."""

from noetlc.canon.canonicalize import CanonicalPlaybook, canonicalize
from noetlc.canon.expansion import Origin
from noetlc.canon.refusal import Refusal

__all__ = ["CanonicalPlaybook", "Origin", "Refusal", "canonicalize"]
