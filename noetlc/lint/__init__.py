"""Running the rules over files: finding the files, configuration, cache, ignores, baseline, fixes."""
