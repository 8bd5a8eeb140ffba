"""Fuzzing of bundles: valid ones are changed at random, and nothing but a bundle error may come of it."""
