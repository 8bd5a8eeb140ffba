"""The protocol between workers and servers: its messages, what a server checks of them, and the connection."""
