"""The container files say the same as the code beside them: versions, commands, settings, secrets."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from django.conf import settings

from touchstone import binaries, counters, embedded, front
from touchstone.management.commands.stack import BEAT, LANES_OF, METRICS, WEB, worker_command
from touchstone.rights import WEB as WEB_ROLE
from touchstone.rights import WORKER as WORKER_ROLE

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
PRODUCT = ("web", "web-2", *LANES_OF, "beat", "metrics", "migrate")
REQUIRED = (
    "SECRET_KEY",
    "POSTGRES_PASSWORD",
    "REDIS_PASSWORD",
    "DATABASE_WEB_PASSWORD",
    "DATABASE_WORKER_PASSWORD",
    "DATABASE_BACKUP_PASSWORD",
    "SITE_HOST",
)


def instructions(name: str) -> list[str]:
    """Return the arguments of every instruction of this name in the Dockerfile, continued lines joined."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{name}\s+(.*)$", joined, flags=re.MULTILINE)


def major_version(image: str) -> str:
    return image.rpartition(":")[2].partition(".")[0].partition("-")[0]


def default_of(value: str, variable: str) -> str:
    """Return what a variable of the file .env stands for where it is not set."""
    return re.fullmatch(rf"\$\{{{variable}:-(.+)\}}", value).group(1)


def test_the_image_of_postgresql_has_the_major_version_of_the_wheel():
    said = subprocess.run(
        [str(binaries.postgres_binaries() / "postgres"), "--version"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    wheel = re.search(r"\(PostgreSQL\) (\d+)", said)
    assert wheel is not None
    image = default_of(SERVICES["postgres"]["image"], "POSTGRES_IMAGE")
    assert image.startswith("postgres:")
    assert major_version(image) == wheel.group(1)


def test_the_image_has_a_python_of_the_project():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    (image,) = [line.removeprefix("BASE=") for line in instructions("ARG")]
    assert instructions("FROM") == ["${BASE}"]
    build = SERVICES["web"]["build"]
    assert default_of(build["args"]["BASE"], "BASE_IMAGE") == image
    version = re.fullmatch(r"python:(\d+)\.(\d+)-slim-bookworm", image)
    assert version is not None
    bounds = re.fullmatch(r">=(\d+)\.(\d+),<(\d+)\.(\d+)", project["requires-python"])
    assert bounds is not None
    lowest, beyond = (tuple(map(int, bounds.group(*place))) for place in ((1, 2), (3, 4)))
    assert lowest <= tuple(map(int, version.groups())) < beyond
    named = {line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line}
    assert named == {f"3.{minor}" for minor in range(lowest[1], beyond[1])}


@pytest.mark.parametrize(
    ("service", "command", "of_the_host"),
    [
        ("web", WEB, ["--bind", "0.0.0.0:8000"]),
        *((name, worker_command(name), []) for name in LANES_OF),
        ("metrics", ["python", *METRICS], []),
        ("web-2", WEB, ["--bind", "0.0.0.0:8000"]),
        ("beat", BEAT, ["--schedule", "/tmp/beat", "--pidfile", ""]),  # noqa: S108 (a container's own /tmp)
    ],
)
def test_a_service_runs_what_the_embedded_stack_runs(service, command, of_the_host):
    assert shlex.split(SERVICES[service]["command"]) == command + of_the_host


def test_the_image_by_itself_is_the_web_process():
    (command,) = instructions("CMD")
    assert json.loads(command) == shlex.split(SERVICES["web"]["command"])


def test_postgresql_is_as_durable_and_as_sorted_as_the_embedded_one():
    command = shlex.split(SERVICES["postgres"]["command"])
    said = dict(option.split("=") for option in command[2::2])
    assert set(command[1::2]) == {"-c"}
    assert said.pop("hba_file") == "/etc/touchstone/pg_hba.conf"
    assert said == {name: embedded.POSTGRES_SETTINGS[name] for name in said}
    assert {"synchronous_commit", "fsync", "full_page_writes"} <= set(said)
    options = shlex.split(SERVICES["postgres"]["environment"]["POSTGRES_INITDB_ARGS"])
    assert set(embedded.INITDB_OPTIONS) - set(options) == {"--no-instructions"}
    assert set(options) < set(embedded.INITDB_OPTIONS)


def test_no_secret_has_a_default_and_every_service_of_ours_gets_them():
    text = (REPOSITORY / "docker-compose.yml").read_text()
    for name in REQUIRED:
        uses = re.findall(rf"\$\{{{name}([^}}]*)\}}", text)
        assert uses
        assert all(use.startswith(":?") for use in uses)
    for service in PRODUCT:
        environment = SERVICES[service]["environment"]
        assert {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "HTTPS"} <= set(environment)
        assert environment["HTTPS"] == "${HTTPS:-1}"
    assert all(SERVICES[name]["environment"]["TOUCHSTONE_ROLE"] == "worker" for name in LANES_OF)
    assert SERVICES["metrics"]["environment"]["METRICS_SITE"] == "http://web:8000"
    (mount,) = [one for one in SERVICES["backup"]["volumes"] if one.startswith("${TOUCHSTONE_BACKUP")]
    mounted = mount.rpartition(":")[2]
    assert SERVICES["metrics"]["environment"]["TOUCHSTONE_BACKUP"] == mounted, "so that none at all is told"


# What leads to a store of files, a pooler and a replica; where nobody says anything there is none.
CHOSEN = ("READ_DATABASE_URL", "POOLER", "FILES_URL")
OF_S3 = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_S3",
    "AWS_REQUEST_CHECKSUM_CALCULATION",
)


def unsaid(value: str, variable: str) -> str:
    """Return what a service gets where the file .env does not have the variable."""
    return re.fullmatch(rf"\$\{{{variable}:-(.*)\}}", value).group(1)


@pytest.mark.parametrize("service", PRODUCT)
def test_what_a_service_gets_where_nothing_is_chosen_is_what_it_has_without_the_variable(service):
    given = SERVICES[service]["environment"]
    assert {name: unsaid(given[name], name) for name in CHOSEN} == dict.fromkeys(CHOSEN, "")
    assert int(unsaid(given["FILES_CACHE_BYTES"], "FILES_CACHE_BYTES")) == settings.FILES_CACHE_BYTES


SAYS_WHAT_IS_CHOSEN = """
import json
from boto3.session import Session
from django.conf import settings
client = Session().client("s3")
print(json.dumps([
    sorted(settings.DATABASES), settings.POOLER, settings.STORAGES["default"]["BACKEND"], client.meta.endpoint_url,
    client.meta.config.request_checksum_calculation, Session().get_credentials() is None,
]))
"""


def test_settings_and_the_client_of_s3_take_what_is_unsaid_as_not_set(tmp_path):
    given = {name: unsaid(SERVICES["worker"]["environment"][name], name) for name in (*CHOSEN, *OF_S3)}
    without = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    without |= {"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path)}
    without |= {"DJANGO_SETTINGS_MODULE": "touchstone.settings"}
    first, second, refused = (
        subprocess.run(
            [sys.executable, "-c", SAYS_WHAT_IS_CHOSEN],
            env={**without, **more},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
        )
        for more in ({}, given, {**given, "AWS_DEFAULT_REGION": ""})
    )
    assert json.loads(first.stdout)[:2] == [["default"], ""], first.stderr
    assert second.stdout == first.stdout, second.stderr
    assert "Invalid endpoint" in refused.stderr, "the control: an empty region is not one that is not set"


def test_the_owner_of_the_database_is_known_to_prepare_alone():
    users = {
        service: urlsplit(
            SERVICES[service]["environment"]["DATABASE_URL"].replace(":?is not set", "")
        ).username
        for service in PRODUCT
    }
    assert users == {name: WORKER_ROLE if name in LANES_OF else WEB_ROLE for name in PRODUCT}
    assert "DATABASE_OWNER_URL" in SERVICES["migrate"]["environment"]
    for service in (*PRODUCT[:-1], "backup"):
        assert not any(
            "POSTGRES_PASSWORD" in str(value) for value in SERVICES[service]["environment"].values()
        )
        assert "DATABASE_OWNER_URL" not in SERVICES[service]["environment"]


def test_only_the_front_door_and_the_metrics_are_published_and_the_metrics_only_on_loopback():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert list(published) == ["front", "metrics"]
    assert all(port.startswith("127.0.0.1:") for port in published["metrics"])
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert SERVICES["postgres"]["networks"] == SERVICES["redis"]["networks"] == ["inside"]
    words = shlex.split(SERVICES["front"]["command"])
    ours = front.command()
    assert words[:-1] == ["caddy", *ours[1:-1]]
    assert (REPOSITORY / words[-1]).samefile(ours[-1])
    assert SERVICES["front"]["environment"]["WEB_PROCESSES"].split() == ["web:8000", "web-2:8000"]


def test_whoever_starts_the_front_door_says_all_that_its_file_asks_for():
    asked = set(re.findall(r"\{\$(\w+)", (REPOSITORY / "deploy" / "Caddyfile").read_text()))
    embedded_says = set(front.environment("http://:8000", ["127.0.0.1:1"], Path("var"), bind="127.0.0.1"))
    assert asked <= embedded_says
    assert asked - {"SITE_BIND"} <= set(SERVICES["front"]["environment"])  # in a container: all addresses
    assert asked <= set(
        re.findall(r"^#   (\w+)", (REPOSITORY / "deploy" / "Caddyfile").read_text(), re.MULTILINE)
    )
    command = [*front.command()[:1], "validate", *front.command()[2:]]
    for address in ("judge.example.org", "http://:8000"):
        settings_of_door = front.environment(
            address, ["web:8000", "web-2:8000"], Path("var"), bind="127.0.0.1"
        )
        valid = subprocess.run(command, env=settings_of_door, capture_output=True, text=True)
        assert valid.returncode == 0, valid.stderr
    wrong = subprocess.run(
        command, env={**settings_of_door, "FRONT_OPTIONS": "no_such_option"}, capture_output=True
    )
    assert wrong.returncode != 0


def test_everything_waits_for_the_migration_and_that_for_postgresql():
    for name in ("web", "web-2", *LANES_OF, "beat", "metrics", "backup"):
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert SERVICES["migrate"]["restart"] == "no"
    assert shlex.split(SERVICES["migrate"]["command"]) == ["python", "manage.py", "prepare"]
    assert "redis" not in SERVICES["web"]["depends_on"]
    for service in SERVICES.values():
        for other, wanted in service.get("depends_on", {}).items():
            assert wanted["condition"] != "service_healthy" or "healthcheck" in SERVICES[other]


def order_of_start(services: dict) -> list[set[str]]:
    """Return who starts when, wave by wave: a service starts when all that it depends on have."""
    waits = {name: set(service.get("depends_on", {})) for name, service in services.items()}
    waves: list[set[str]] = []
    while waits:
        ready = {name for name, others in waits.items() if not others & set(waits)}
        if not ready:
            raise ValueError(f"these wait for one another: {sorted(waits)}")
        waves.append(ready)
        waits = {name: others for name, others in waits.items() if name not in ready}
    return waves


def test_services_start_in_an_order_that_ends():
    first, second, third = order_of_start(SERVICES)
    assert first == {"postgres", "redis", "front"}
    assert second == {"migrate"}
    assert third == {"web", "web-2", *LANES_OF, "beat", "metrics", "backup"}
    circle = {**SERVICES, "postgres": {"depends_on": {"web": {"condition": "service_started"}}}}
    with pytest.raises(ValueError, match="wait for one another"):
        order_of_start(circle)


def test_every_container_is_limited_and_its_log_rotates():
    for name, service in SERVICES.items():
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["pids_limit"] == 300
        assert re.search(r"\d+[mg]\}?$", service["mem_limit"]), name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}
    for name in (*PRODUCT, "front", "backup"):
        assert SERVICES[name]["read_only"] is True
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert "privileged" not in SERVICES[name]
        # What is written outside a volume would fail: temporary files have one too.
        assert "/tmp" in SERVICES[name]["volumes"]  # noqa: S108


def test_data_lie_in_declared_volumes_where_the_images_keep_them():
    mounts = {name: service.get("volumes", []) for name, service in SERVICES.items()}
    data, rules = mounts["postgres"]
    assert data == "database:/var/lib/postgresql"
    assert rules == "./deploy/pg_hba.conf:/etc/touchstone/pg_hba.conf:ro"
    (folder,) = re.findall(r"TOUCHSTONE_VAR=(\S+)", DOCKERFILE)
    files = settings.MEDIA_ROOT.relative_to(settings.VAR)
    counts = counters.folder().relative_to(settings.VAR)
    cache = settings.FILES_CACHE.relative_to(settings.VAR)
    ours = [f"{name}:{folder}/{name}" for name in map(str, (files, cache, counts, "mail"))]
    assert all(mounts[name] == [*ours, "/tmp"] for name in PRODUCT)  # noqa: S108 (a container's own)
    # A new volume gets the owner that the image's folder has.
    (made,) = [line for line in instructions("RUN") if "--owner touchstone" in line]
    wanted = {f"{folder}/{name}" for name in (files, cache, counts, "backup")}
    assert wanted <= set(made.split())
    assert not wanted <= set(made.replace(f"{folder}/{cache}", "").split()), "the control"
    assert mounts["backup"] == [
        f"files:{folder}/{files}:ro",
        f"${{TOUCHSTONE_BACKUP:-backup}}:{folder}/backup",
        "/tmp",  # noqa: S108
    ]
    assert shlex.split(SERVICES["backup"]["command"]) == [
        "python",
        "manage.py",
        "backup",
        f"{folder}/backup",
        "--daily",
    ]
    # Static files are made with the image: a volume over their folder would serve those of an older one.
    assert settings.STATIC_ROOT != settings.MEDIA_ROOT
    assert mounts["front"] == [f"certificates:{folder}/certificates", "/tmp"]  # noqa: S108
    named = {"backup", "cache", "certificates", "counters", "database", "files", "mail"}
    assert set(COMPOSE["volumes"]) == named


def test_whoever_connects_over_the_network_needs_a_password_and_may_replicate_with_it():
    lines = (REPOSITORY / "deploy" / "pg_hba.conf").read_text().splitlines()
    rules = [line.split() for line in lines if not line.startswith("#")]
    hosts = [rule for rule in rules if rule[0] == "host"]
    assert [rule[1] for rule in hosts] == ["all", "replication"]
    assert {rule[-1] for rule in hosts} == {"scram-sha-256"}
    assert [rule for rule in rules if rule[0] not in ("host", "local")] == []


def test_the_image_is_built_from_the_lock_without_tools_and_runs_as_nobody_special():
    assert "--require-hashes -r requirements.lock" in DOCKERFILE
    assert "requirements-dev" not in DOCKERFILE
    (user,) = instructions("USER")
    assert user not in {"root", "0"}
    # The key is one command's own, not the image's.
    assert not any("SECRET_KEY" in line for line in instructions("ENV") + instructions("ARG"))
    assert "SECRET_KEY=" in DOCKERFILE


def test_nothing_enters_the_image_that_is_not_named():
    rules = [
        line
        for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert rules[0] == "*"
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    for private in ("var", ".env", ".git", ".venv", "tests", "requirements-dev.lock", "docker-compose.yml"):
        assert not any(fnmatch(private, rule) for rule in allowed)
    for needed in (
        "platform",
        "judging",
        "sampling",
        "analytics",
        "deploy",
        "manage.py",
        "pyproject.toml",
        "requirements.lock",
    ):
        assert needed in allowed
        assert (REPOSITORY / needed).exists()
    # hatchling refuses to build without the files that pyproject.toml names.
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert {project["readme"], *project["license-files"]} <= set(allowed)


def test_docker_compose_accepts_the_file():
    client = shutil.which("docker")
    if client is None or subprocess.run([client, "compose", "version"], capture_output=True).returncode:
        pytest.skip("the docker client, or its compose plugin, is not installed here")
    environment = dict.fromkeys(REQUIRED, "of-the-tests")
    command = [client, "compose", "--file", str(REPOSITORY / "docker-compose.yml"), "config", "--quiet"]
    accepted = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert accepted.returncode == 0, accepted.stderr
    refused = subprocess.run(command, env={}, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "is not set" in refused.stderr
