"""What the compiler may know of the virtual machine: names, filters, tests, methods, events and tool kinds."""
