"""The assembly language: a program as text (`disassembler`), and back (`assembler`)."""
