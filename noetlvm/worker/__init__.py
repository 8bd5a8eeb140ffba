"""The worker's side: a process that holds commands by leases, runs their pipelines with tools, and reports."""
