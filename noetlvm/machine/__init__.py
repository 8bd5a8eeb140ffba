"""The pure machine: it decides what happens and folds what happened. No clock, no identifiers, no input or output."""
