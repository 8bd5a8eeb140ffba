"""Tool kinds: one file a kind, named as the kind is; `kind` says what a kind is and `registry` finds one by name."""
