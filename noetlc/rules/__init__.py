"""The linter's rules: one file each, named by code. `rule.py` says what a rule is, `catalogue.py` finds them."""
