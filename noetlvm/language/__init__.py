"""The language as compiler and virtual machine share it: names, filters, tests, methods, events and tool kinds."""
