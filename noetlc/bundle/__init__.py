"""What one does with bundles at the command line: build them, look into them, find the way back to the source."""
