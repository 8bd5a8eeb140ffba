"""The service: an HTTP API over the store and the server's driver, for people, CI and workers."""
