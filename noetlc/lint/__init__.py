"""Running the rules over files: finding the files, cache, ignores, baseline, fixes."""
