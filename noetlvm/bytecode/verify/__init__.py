"""What is proved of a program before it may run."""
