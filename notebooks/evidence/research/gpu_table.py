"""Moved to evidence/bench/gpu_table.py."""

import sys

from evidence.bench import gpu_table

sys.modules[__name__] = gpu_table
