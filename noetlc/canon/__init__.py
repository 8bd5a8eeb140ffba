"""The canonical form: the one shape of all playbooks that mean the same, as a syntax tree and printable as YAML."""
