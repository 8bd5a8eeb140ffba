"""The text form: the assembler takes back what the disassembler writes, and says what is wrong with anything else."""

from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from noetlvm.bytecode.assembler import AssemblyError, assemble
from noetlvm.bytecode.assembly_cursor import MAX_ELEMENTS, MAX_NESTING, MAX_TEXT
from noetlvm.bytecode.disassembler import disassemble
from noetlvm.bytecode.isa import EXPRESSION, OPCODES, PIPELINE
from noetlvm.bytecode.program import DebugEntry, DebugMap, Expression, Mark, Pipeline, Program, Value
