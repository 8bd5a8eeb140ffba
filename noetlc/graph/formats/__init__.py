"""One way to show a graph report a file. Each turns a report into text and decides nothing."""
