"""The worker's side: runs pipelines with tools, and reports what happened."""
