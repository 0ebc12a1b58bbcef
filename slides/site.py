"""The command `python slides/site.py`: what it does stands in slides/build.py."""

import os
import sys
from pathlib import Path

os.chdir(Path(__file__).resolve().parents[1])
os.execv(sys.executable, [sys.executable, "-m", "slides.build", *sys.argv[1:]])
