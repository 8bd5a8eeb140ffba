"""The bytecode: instruction set, program, bundle, verifier, text form. Shared by the compiler and the machine.

Imports nothing of the rest of `noetlvm` but `expr`'s tables. A bundle outlives the compiler that made it, so the
format is owned here.
"""
