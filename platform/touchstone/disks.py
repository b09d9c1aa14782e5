"""How much room the disks have that this process writes to, and what to say where it is too little."""

import tempfile
from pathlib import Path

import psutil
from django.conf import settings


def folders() -> dict[str, Path]:
    """Return the folders that this process writes to, by what they hold: one on each disk that can be full."""
    named = {"var": settings.VAR, "files": settings.MEDIA_ROOT, "temporary": Path(tempfile.gettempdir())}
    return {name: folder for name, folder in named.items() if folder.exists()}


def free_bytes() -> dict[str, int]:
    """Return what is free on the disk of each folder."""
    return {name: psutil.disk_usage(str(folder)).free for name, folder in folders().items()}


def shortage() -> str:
    """Return what is free on the fullest disk where that is less than DISK_FLOOR, else an empty text."""
    free, floor = min(free_bytes().values()), settings.DISK_FLOOR
    return "" if free >= floor else f"{free / 1e9:.1f} GB free, less than {floor / 1e9:g} GB"
