"""The linter's rules: one file each, named by code. `rule.py` defines what a rule is, `catalogue.py` finds them."""
