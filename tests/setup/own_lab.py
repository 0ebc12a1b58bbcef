"""Where does a JupyterLab of a test answer and write? At a free port, and in folders of its own."""

import socket


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def folders(home):
    """The variables that keep a JupyterLab out of a person's own settings."""
    kinds = ("CONFIG", "DATA", "RUNTIME")
    return {f"JUPYTER_{kind}_DIR": str(home / kind) for kind in kinds} | {
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
    }


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
