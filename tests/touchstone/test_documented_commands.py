"""What an operator is told to type: each `manage.py` command parses, and each is run by a test with its options."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, get_commands, load_command_class
from django.core.management.base import CommandParser

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ("README", *(f"docs/{name}" for name in ("operations", "upgrading", "privacy", "scale", "ledger")))
TYPED = re.compile(r"manage\.py ([^\n#`]+)")
# (command, option) that no test runs as such, and why.
NOT_RUN = {
    ("demo", "--port"): "it hands the port to the stack, whose option is run",
    ("orphans", "--delete"): "test_s3.py hands it over by a helper, as *arguments",
    ("schema", ""): "make schema writes what test_schema.py compares with a migrated database",
}


def lines_of(text: str) -> list[str]:
    """Return the lines of indented blocks; one that ends with a backslash goes on with the next."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return [line.strip() for line in joined.splitlines() if re.match(r" {4,}\S", line)]


def typed_in(text: str) -> list[list[str]]:
    """Return the words of each manage.py command that is set as a block."""
    return [shlex.split(words) for line in lines_of(text) for words in TYPED.findall(line)]


def options_of(words: list[str]) -> set[tuple[str, str]]:
    """Return the pairs of a command and each of its options; without an option the second is empty."""
    return {(words[0], word) for word in words[1:] if word.startswith("-")} or {(words[0], "")}


def parser_of(name: str) -> CommandParser:
    app = get_commands()[name]
    return (load_command_class(app, name) if isinstance(app, str) else app).create_parser("manage.py", name)


def said_by(text: str) -> list[list[str]]:
    """Return the commands of a page, in blocks and in the text, with what follows the name."""
    inline = [words for span in re.findall(r"`([^`\n]+)`", text) for words in TYPED.findall(span)]
    return [*typed_in(text), *(shlex.split(words) for words in inline)]


def run_by(source: str) -> set[tuple[str, str]]:
    """Return what a test's code runs by `call_command` or `manage`, or as a list of words with manage.py."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        named: list[str | None] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "call_command",
            "manage",
        ):
            parts, named = node.args, [keyword.arg for keyword in node.keywords]
        elif isinstance(node, ast.List):
            at = [n for n, part in enumerate(node.elts, 1) if "manage.py" in ast.unparse(part)]
            parts = node.elts[at[0] :] if at else []
        else:
            continue
        words = [str(part.value) for part in parts if isinstance(part, ast.Constant)]
        options = [
            *(word for word in words if word.startswith("-")),
            *(f"--{name}" for name in named if name),
        ]
        found |= {(words[0], option.replace("_", "-")) for option in ("", *options)} if words else set()
    return found


def run_by_tests() -> set[tuple[str, str]]:
    files = (REPOSITORY / "tests").rglob("test_*.py")
    return {pair for file in files if file != Path(__file__) for pair in run_by(file.read_text())}


def text_of(page: str) -> str:
    return (REPOSITORY / f"{page}.md").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_every_typed_command_is_one_that_its_parser_takes(page):
    for name, *arguments in typed_in(text_of(page)):
        parser_of(name).parse_args(arguments)  # refuses an unknown option, a missing or a surplus word
    for words in said_by(text_of(page)):
        known = parser_of(words[0])._option_string_actions
        assert [word for _, word in options_of(words) if word and word not in known] == [], words


def test_every_command_and_option_of_the_pages_is_run_by_a_test_or_has_a_reason():
    told = {pair for page in PAGES for words in said_by(text_of(page)) for pair in options_of(words)}
    assert len(told) > 20
    missing = told - run_by_tests()
    assert missing - set(NOT_RUN) == set()
    assert set(NOT_RUN) - missing == set()  # every reason is still needed


def absent(lines: list[str]) -> list[str]:
    """Return what lines for systemctl, kubectl and docker compose name and `deploy/` or the compose file has not."""
    services = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"]
    units = {path.name for path in (REPOSITORY / "deploy" / "systemd").iterdir()}
    manifests = "".join(path.read_text() for path in (REPOSITORY / "deploy" / "kubernetes").glob("*.yaml"))
    found = []
    for line in lines:
        for unit in re.findall(r"\btouchstone[-.@\w]*", line) if line.startswith("systemctl") else []:
            file = re.sub(r"@\d+", "@", unit)
            found += [unit] if file not in units and f"{file}.service" not in units else []
        if line.startswith("kubectl"):
            found += [path for path in re.findall(r"-f (\S+)", line) if not (REPOSITORY / path).exists()]
            names = re.findall(r"(?:secret generic|delete job|job/) ?(\S+)", line)
            found += [name for name in names if not re.search(rf"name: {name}(?![-\w])", manifests)]
        if line.startswith("docker compose"):
            named = re.findall(r"(?:exec|logs|run .*\") (\w[\w-]*)", line)
            found += [name for name in named if name not in services]
    return found


def test_units_manifests_and_services_that_are_named_exist():
    lines = [line for page in PAGES for line in lines_of(text_of(page))]
    programs = ("systemctl", "kubectl", "docker compose")
    assert [program for program in programs if not any(line.startswith(program) for line in lines)] == []
    assert absent(lines) == []


def test_a_planted_unit_manifest_secret_and_service_are_seen():
    planted = [
        "systemctl restart touchstone-web@8001 touchstone-clock",
        "kubectl apply -f deploy/kubernetes/99-none.yaml",
        "kubectl -n touchstone create secret generic touchstone-nobody --from-env-file a.env",
        'docker compose run --rm -v "$PWD/a:/b" nobody python manage.py prepare',
    ]
    assert absent(planted) == [
        "touchstone-clock",
        "deploy/kubernetes/99-none.yaml",
        "touchstone-nobody",
        "nobody",
    ]


def test_a_planted_option_and_a_planted_word_are_refused_and_a_right_line_passes():
    good, option, word = typed_in(
        "    x/manage.py prepare --check # looks\n    manage.py prepare \\\n      --chekc\n"
        "    manage.py verify_ledger a b\n"
    )
    parser_of(good[0]).parse_args(good[1:])
    for name, *arguments in (option, word):
        with pytest.raises((CommandError, SystemExit)):
            parser_of(name).parse_args(arguments)


def test_what_a_test_runs_is_read_from_its_code():
    source = 'call_command("backup", x, daily=True)\nrun([python, "manage.py", "person", "--erase"])\n"verify_ledger"'
    found = run_by(source)
    assert {("backup", "--daily"), ("person", "--erase")} <= found
    assert not {name for name, _ in found} & {"verify_ledger"}
