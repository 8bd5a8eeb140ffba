"""One question about a net a file. Each answer comes with a firing sequence that shows it."""
