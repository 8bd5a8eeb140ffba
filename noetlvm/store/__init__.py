"""Stores executions: their events, bundles, snapshots, commands and requests. Decides nothing about them."""
