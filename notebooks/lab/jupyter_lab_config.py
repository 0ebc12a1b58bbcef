"""How does JupyterLab open here? `make lab` names this folder, and JupyterLab reads it.

Defaults stand in labconfig/, what makes Predict and Your turn loud in labextensions/. Nothing is
written into your home: which tabs and panels are open is kept beside the Python that runs this.
"""

import os
import sys
from pathlib import Path

from jupyterlab_server.workspaces_handler import WorkspacesManager

HERE = Path(__file__).resolve().parent
BESIDE_PYTHON = os.path.join(sys.prefix, "share", "jupyter", "lab", "workspaces")
REMEMBERED = os.environ.get("JUPYTERLAB_WORKSPACES_DIR", BESIDE_PYTHON)

c = get_config()  # noqa: F821
c.LabApp.workspaces_dir = REMEMBERED
c.LabApp.extra_labextensions_path = [str(HERE / "labextensions")]

# kernels start in work/, where the relative PYTHONPATH of environment.yml leads nowhere
NOTEBOOKS = HERE.parent
paths = [str(NOTEBOOKS.parent), str(NOTEBOOKS), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

# a library that looks for ipywidgets apologises on pink where there are none
os.environ.setdefault("PYTHONWARNINGS", "ignore::Warning:tqdm.auto")

# the first time the table of contents is open; from then on whatever you left open
workspaces = WorkspacesManager(REMEMBERED)
if not workspaces.list_workspaces():
    workspaces.save("default", (HERE / "workspace.json").read_text(encoding="utf-8"))
