"""The embedded engine: server and worker in one process."""
