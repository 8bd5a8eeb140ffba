"""Wake-ups between servers and workers: in process, by PostgreSQL's NOTIFY, or by NATS."""
