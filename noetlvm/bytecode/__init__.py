"""The bytecode: instruction set, program, codec and verifier. Shared by the compiler and the machine.

A bundle outlives the compiler that made it, so the format is owned here.
"""
