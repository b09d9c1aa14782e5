"""Build the image, start its web process against real servers and fetch a page; say why where that is not possible.

    python .ci/image.py [--base IMAGE] [--name touchstone]

The builder is docker, podman or buildah, the first of them that works here. Without one, or without the base image, the
program says so and ends with 0; with 1 if the image cannot be built or does not serve.
"""

import argparse
import json
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from touchstone.processes import Program

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "platform"), str(REPOSITORY)]

Run = Callable[..., list[str]]  # (environment, *command): the command line that runs it in the image
DOCKERFILE = REPOSITORY / "Dockerfile"
SECONDS_TO_START = 120
ROLES = ("WEB", "WORKER", "BACKUP")
NEEDED = ("database", "write", "schema")  # of /readyz; no worker runs here


class NotHereError(Exception):
    """Nothing can be built on this machine; the message is the reason."""


@dataclass(frozen=True)
class Builder:
    """A program that builds images, and how it is asked."""

    name: str
    works: Sequence[str]
    has: Sequence[str]
    pull: Sequence[str]
    build: Sequence[str]


BUILDERS = (
    # `version` and `info` ask the daemon, where there is one: a client alone builds nothing.
    Builder("docker", ["version"], ["image", "inspect"], ["pull"], ["build"]),
    Builder("podman", ["info"], ["image", "exists"], ["pull"], ["build", "--format", "docker"]),
    Builder("buildah", ["info"], ["inspect", "--type", "image"], ["pull"], ["build", "--format", "docker"]),
)


def quietly(*command: str) -> bool:
    """Return whether a command succeeds."""
    return subprocess.run(command, capture_output=True).returncode == 0


def builder() -> Builder:
    """Return the first builder that works here."""
    found = [candidate for candidate in BUILDERS if shutil.which(candidate.name)]
    for candidate in found:
        if quietly(candidate.name, *candidate.works):
            return candidate
    if found:
        names = ", ".join(candidate.name for candidate in found)
        raise NotHereError(f"{names}: installed, but not working here (no daemon, or no rights)")
    raise NotHereError("docker, podman or buildah is needed, and none is installed")


def default_base() -> str:
    """Return the base image that the Dockerfile names."""
    return re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE.read_text(), flags=re.MULTILINE)[0]


def obtain(chosen: Builder, base: str) -> None:
    """Have the base image on this machine."""
    if not quietly(chosen.name, *chosen.has, base) and not quietly(chosen.name, *chosen.pull, base):
        raise NotHereError(
            f"{chosen.name} has no image {base} and cannot fetch it (--base names another one)"
        )


def build(chosen: Builder, base: str, name: str) -> None:
    """Build the image under this name."""
    command = [chosen.name, *chosen.build, "--build-arg", f"BASE={base}", "--tag", name]
    subprocess.run([*command, "--file", str(DOCKERFILE), str(REPOSITORY)], check=True)


def options(environment: dict[str, str]) -> list[str]:
    """Return the variables as options. Their passwords are those of servers that end with this program."""
    return [word for pair in environment.items() for word in ("--env", "=".join(pair))]


@contextmanager
def running(chosen: Builder, name: str) -> Iterator[Run]:
    """Give what runs a command in the image, on this machine's network."""
    if chosen.name != "buildah":

        def run(environment: dict[str, str], *command: str) -> list[str]:
            return [chosen.name, "run", "--rm", "--network", "host", *options(environment), name, *command]

        if quietly(*run({}, "true")) or not shutil.which("buildah"):
            yield run
            return
    # Podman builds in places where it may not run; both keep their images in one place.
    made = subprocess.run(
        ["buildah", "from", name], capture_output=True, text=True, check=True
    ).stdout.strip()
    try:
        yield lambda environment, *command: ["buildah", "run", *options(environment), made, "--", *command]
    finally:
        subprocess.run(["buildah", "rm", made], capture_output=True, check=True)


def try_out(run: Run) -> list[str]:
    """Prepare a database from the image, start its web process on it, fetch three addresses; return what is wrong."""
    from touchstone import embedded, rights
    from touchstone.management.commands.stack import WEB
    from touchstone.processes import Program

    with tempfile.TemporaryDirectory(prefix="touchstone-image-") as folder:
        servers = embedded.Servers(Path(folder) / "servers")
        servers.start()
        try:
            environment = {
                "DATABASE_URL": servers.url_of(rights.WEB),
                "REDIS_URL": servers.redis_url,
                "SECRET_KEY": secrets.token_hex(32),
                "HTTPS": "0",
            }
            owner = {"DATABASE_OWNER_URL": servers.database_url}
            owner |= {
                f"DATABASE_{role}_PASSWORD": servers.passwords[f"touchstone_{role.lower()}"] for role in ROLES
            }
            if subprocess.run(run(environment | owner, "python", "manage.py", "prepare")).returncode:
                return ["`prepare` fails in the image"]
            port = embedded.free_port()
            web = Program("web", run(environment, *WEB, "--bind", f"127.0.0.1:{port}"))
            web.start(Path(folder))
            try:
                return faults(f"http://127.0.0.1:{port}", web)
            finally:
                web.stop()
        finally:
            servers.stop()


def faults(site: str, web: "Program") -> list[str]:
    """Return what the web process answers wrongly."""
    from touchstone.processes import StackError, answers

    try:
        answers(f"{site}/livez", "ok", lambda: web.process.poll() is None, SECONDS_TO_START)()
    except StackError as error:
        return [str(error)]
    page = fetch(f"{site}/login/")
    style = re.search(r'href="(/static/[^"]+\.css)"', page)
    health = json.loads(fetch(f"{site}/readyz", also=503))["checks"]  # with 503 it says what is wrong
    # Without a database nothing behind it is looked at.
    said = {name: health.get(name, "not looked at") for name in NEEDED}
    wrong = [f"/readyz says of {name}: {words}" for name, words in said.items() if words != "ok"]
    if "Log in" not in page or style is None:
        return [*wrong, "the page of the log-in is not as it should be"]
    if not fetch(site + style.group(1)):
        wrong.append(f"{style.group(1)} is empty")
    return wrong


def fetch(address: str, also: int = 200) -> str:
    """Return what stands at an address of the web process, if it answers 200 or the other status."""
    try:
        with urllib.request.urlopen(address, timeout=30) as response:  # noqa: S310 (a loopback address of ours)
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        if error.code != also:
            raise
        with error:
            return error.read().decode()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", help="the image to build on (the Dockerfile's own without it)")
    parser.add_argument("--name", default="touchstone", help="the name that the image gets")
    arguments = parser.parse_args()
    base = arguments.base or default_base()
    try:
        chosen = builder()
        obtain(chosen, base)
    except NotHereError as reason:
        print(f"The image was not built: {reason}.")
        return 0
    build(chosen, base, arguments.name)
    with running(chosen, arguments.name) as run:
        wrong = try_out(run)
    for line in wrong:
        print(line, file=sys.stderr)
    print(
        f"{chosen.name} built {arguments.name} on {base}: its pages "
        + ("do not serve." if wrong else "serve.")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
