"""Nothing of the product runs text as a program, and nothing that is deployed is made for developers."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path
    for folder in ("judging", "sampling", "analytics", "platform")
    for path in (ROOT / folder).rglob("*.py")
    if "node_modules" not in path.parts
)
SCRIPTS = sorted(
    path for folder in ("judging", "platform") for path in (ROOT / folder).rglob("static/**/*.js")
)
MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "yaml",
    "lxml",
    "xmlrpc",
    "telnetlib",
    "ftplib",
    "ldap",
    "md5",
}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "hashlib.md5", "hashlib.sha1"}
# Of the browser: text that becomes markup or a program, and messages from other windows.
IN_SCRIPTS = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|postMessage|indexedDB|WebSocket"
    r"|RTCPeerConnection)\b|onmessage|addEventListener\(\"message\""
)


def dangers(source: str) -> list[str]:
    """Return what a module imports or calls that could run, read or hash what it should not."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        found += [name for name in names if name.partition(".")[0] in MODULES]
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found += [name] if name in CALLS else []
            found += [
                f"{name}(shell=True)"
                for word in node.keywords
                if word.arg == "shell" and ast.unparse(word.value) != "False"
            ]
    return found


def test_no_module_runs_text_starts_a_shell_or_reads_objects():
    assert len(SOURCES) > 300
    assert {
        path.relative_to(ROOT).as_posix(): found for path in SOURCES if (found := dangers(path.read_text()))
    } == {}


@pytest.mark.parametrize(
    "planted",
    [
        "import pickle",
        "from yaml import load",
        "eval(name)",
        "import os\nos.system('ls')",
        "subprocess.run(words, shell=True)",
        "hashlib.md5(b'')",
    ],
)
def test_a_planted_danger_is_seen(planted):
    assert len(dangers(planted)) == 1


def test_no_script_makes_markup_of_text_or_hears_other_windows():
    assert len(SCRIPTS) > 15
    assert [(path.name, found) for path in SCRIPTS if (found := IN_SCRIPTS.search(path.read_text()))] == []
    assert IN_SCRIPTS.search("box.innerHTML = name")
    assert IN_SCRIPTS.search('window.addEventListener("message", hear)')


def test_no_deployment_switches_debug_pages_or_the_demo_on():
    deployed = [ROOT / "docker-compose.yml", ROOT / "Dockerfile", *(ROOT / "deploy").rglob("*.*")]
    text = "\n".join(path.read_text() for path in deployed if path.is_file())
    assert "TOUCHSTONE_ROLE" in text
    assert not re.search(r"\b(DEBUG|TOUCHSTONE_DEMO)\b", text)
