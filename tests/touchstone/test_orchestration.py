"""Units of systemd and manifests of Kubernetes run what the embedded stack runs, with no more rights than needed."""

import copy
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from django.conf import settings

from touchstone import front
from touchstone.counters import folder
from touchstone.management.commands.stack import BEAT, LANES_OF, METRICS, WEB, worker_command

REPOSITORY = Path(__file__).resolve().parents[2]
SYSTEMD = REPOSITORY / "deploy" / "systemd"
KUBERNETES = REPOSITORY / "deploy" / "kubernetes"
UNITS = {path.stem.removeprefix("touchstone-"): path.read_text() for path in SYSTEMD.glob("*.service")}
# The oldest and the newest Kubernetes that the manifests are held against.
VERSIONS = ("1.30", "1.37")
BEAT_OPTIONS = ["--schedule", "/tmp/beat", "--pidfile", ""]  # noqa: S108 (a service's own /tmp)
FRONT = ["caddy", *front.command()[1:-1], "deploy/Caddyfile"]
PREPARE = ["python", "manage.py", "prepare"]
COMMANDS = {
    **{name: worker_command(name) for name in LANES_OF},
    "beat": [*BEAT, *BEAT_OPTIONS],
    "metrics": ["python", *METRICS],
    "front": FRONT,
    "prepare": PREPARE,
}
SECRETS = {  # who knows which
    "web": {"touchstone-web"},
    "metrics": {"touchstone-web"},
    "worker": {"touchstone-web", "touchstone-worker"},
    "quick": {"touchstone-web", "touchstone-worker"},
    "beat": {"touchstone-web"},
    "backup": {"touchstone-web", "touchstone-backup"},
    "prepare": {"touchstone-web", "touchstone-owner"},
    "front": set(),
}


def manifests() -> list[dict]:
    return [
        document
        for path in sorted(KUBERNETES.glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
    ]


def pods() -> dict[str, dict]:
    """Return the pod of each deployment and job, by its name without "touchstone-"."""
    return {
        manifest["metadata"]["name"].removeprefix("touchstone-"): manifest["spec"]["template"]["spec"]
        for manifest in manifests()
        if manifest["kind"] in ("Deployment", "Job")
    }


def containers() -> dict[str, dict]:
    return {container["name"]: container for pod in pods().values() for container in pod["containers"]}


def of_unit(name: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNITS[name], re.MULTILINE)


def command_of_unit(name: str) -> list[str]:
    """Return what a unit starts, with the program by its bare name."""
    (line,) = of_unit(name, "ExecStart")
    program, *arguments = shlex.split(line.replace("%%", "%"))
    assert program.startswith("/srv/touchstone/.venv/bin/")
    return [Path(program).name, *arguments]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_unit_and_a_container_run_what_the_embedded_stack_runs(name):
    assert command_of_unit(name) == COMMANDS[name]
    assert containers()[name]["command"] == COMMANDS[name]


def test_web_processes_and_backups_run_what_the_embedded_stack_runs_at_their_places():
    assert command_of_unit("web@") == [*WEB, "--bind", "127.0.0.1:%i"]
    assert containers()["web"]["command"] == [*WEB, "--bind", "0.0.0.0:8000"]
    daily = ["python", "manage.py", "backup"]
    assert command_of_unit("backup") == [*daily, "/srv/backup", "--daily"]
    assert containers()["backup"]["command"] == [*daily, "/var/lib/touchstone/backup", "--daily"]
    target = (SYSTEMD / "touchstone.target").read_text()
    wanted = set(re.findall(r"touchstone-([\w@]+)\.service", target))
    assert wanted == {"web@8001", "web@8002", *LANES_OF, "beat", "metrics", "front"}
    assert "127.0.0.1:8001 127.0.0.1:8002" in UNITS["front"]


def test_only_prepare_reads_the_owners_file_and_the_front_door_none_with_secrets():
    files = {name: [Path(line).stem for line in of_unit(name, "EnvironmentFile")] for name in UNITS}
    assert files == {
        "web@": ["common"],
        "metrics": ["common"],
        "beat": ["common"],
        # The later file counts: a worker logs in as itself.
        "worker": ["common", "worker"],
        "quick": ["common", "worker"],
        "backup": ["common", "backup"],
        "prepare": ["common", "owner"],
        "front": ["front"],
    }
    assert not re.search(r"^(EnvironmentFile|MemoryMax|Restart)=", common(), re.MULTILINE)
    for name in LANES_OF:
        assert of_unit(name, "Environment") == ["TOUCHSTONE_ROLE=worker"]
    assert [name for name in UNITS if "AmbientCapabilities" in UNITS[name]] == ["front"]
    assert all(of_unit(name, "MemoryMax") for name in UNITS)


def common() -> str:
    """Return what holds for every unit."""
    return (SYSTEMD / "touchstone-.service.d" / "10-all.conf").read_text()


def analyzed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask systemd about the units of a folder, and of no other."""
    environment = {**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:", "SYSTEMD_COLORS": "0"}
    return subprocess.run(["systemd-analyze", *arguments], env=environment, capture_output=True, text=True)


@pytest.fixture
def units(tmp_path):
    """The units as this machine could start them: with programs that are here."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed here")
    folder, programs = tmp_path / "units", tmp_path / ".venv" / "bin"
    shutil.copytree(SYSTEMD, folder)
    programs.mkdir(parents=True)
    for name in {command_of_unit(name)[0] for name in UNITS}:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    (folder / "touchstone-web@.service").rename(folder / "touchstone-web@8001.service")
    (folder / "touchstone-web@8002.service").write_text((folder / "touchstone-web@8001.service").read_text())
    for path in (*folder.glob("*.service"), *folder.rglob("*.conf")):
        path.write_text(path.read_text().replace("/srv/touchstone", str(tmp_path)))
    return folder


def test_systemd_accepts_the_units_and_finds_them_little_exposed(units):
    names = sorted(path.name for path in units.glob("touchstone*.*") if path.is_file())
    verified = analyzed(units, "verify", "--man=no", *(str(units / name) for name in names))
    assert (verified.returncode, verified.stderr) == (0, "")
    for name in names:
        if name.endswith(".service"):
            said = analyzed(units, "security", "--offline=true", "--threshold=20", name)
            assert said.returncode == 0, said.stdout
    # Without what holds for every unit they are exposed, and a wrong name is seen.
    shutil.rmtree(units / "touchstone-.service.d")
    assert analyzed(
        units, "security", "--offline=true", "--threshold=20", "touchstone-worker.service"
    ).returncode
    planted = units / "touchstone-beat.service"
    planted.write_text(planted.read_text().replace("MemoryMax", "MemoryMost"))
    assert "MemoryMost" in analyzed(units, "verify", "--man=no", str(planted)).stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field_of_the_manifests(version):
    for manifest in manifests():
        kubernetes_validate.validate(manifest, version, strict=True)
    planted = copy.deepcopy(next(manifest for manifest in manifests() if manifest["kind"] == "Deployment"))
    planted["spec"]["replica"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(planted, version, strict=True)


def test_pods_have_no_rights_no_secret_of_others_and_limits():
    for name, pod in pods().items():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        claimed = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"], name
            assert {mount["name"] for mount in container["volumeMounts"]} <= claimed
            # Whoever may write nowhere else needs a /tmp.
            assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}  # noqa: S108
    known = {
        name: {source["secretRef"]["name"] for source in container["envFrom"] if "secretRef" in source}
        for name, container in containers().items()
    }
    assert known == SECRETS
    # By reference alone: no manifest holds one.
    assert not any(manifest["kind"] == "Secret" for manifest in manifests())
    values = [value["name"] for container in containers().values() for value in container.get("env", [])]
    assert set(values) == {"TOUCHSTONE_ROLE"}
    (uid,) = re.findall(r"--uid (\d+)", (REPOSITORY / "Dockerfile").read_text())
    assert {pod["securityContext"]["runAsUser"] for pod in pods().values()} == {int(uid)}


VAR = "/var/lib/touchstone"
WRITTEN = {
    str(path.relative_to(settings.VAR)) for path in (settings.MEDIA_ROOT, settings.FILES_CACHE, folder())
}


def not_writable(pod: dict, container: dict) -> set[str]:
    """Return the folders of the product that a container cannot write, because no volume is there."""
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounts = [mount for mount in container["volumeMounts"] if not mount.get("readOnly")]
    there = {mount["mountPath"] for mount in mounts if mount["name"] in volumes}
    return {name for name in WRITTEN if f"{VAR}/{name}" not in there}


def test_whoever_reads_and_stores_files_can_write_each_folder_that_the_settings_name():
    assert {"files", "cache", "counters"} == WRITTEN
    for name in ("web", *LANES_OF):
        pod = pods()[name]
        container = next(one for one in pod["containers"] if one["name"] == name)
        assert not_writable(pod, container) == set(), name
        planted = copy.deepcopy(container)
        planted["volumeMounts"] = [one for one in planted["volumeMounts"] if one["name"] != "cache"]
        assert not_writable(pod, planted) == {"cache"}, "the control"
        (size,) = [one["emptyDir"]["sizeLimit"] for one in pod["volumes"] if one["name"] == "cache"]
        # A file in use may exceed the bound, and a pod that exceeds its volume's is ended.
        assert int(size.removesuffix("Gi")) * 2**30 >= 2 * settings.FILES_CACHE_BYTES
    # Of a unit the whole folder is its own.
    assert f"TOUCHSTONE_VAR={VAR} " in common()
    assert "\nStateDirectory=touchstone\n" in common()


def test_probes_ask_what_they_should_and_one_web_pod_always_stays():
    web = containers()["web"]
    asked = {name: web[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert asked == {"startup": "/livez", "readiness": "/readyz", "liveness": "/livez"}
    data = {manifest["metadata"]["name"]: manifest["data"] for manifest in manifests() if "data" in manifest}
    for name in ("startup", "readiness", "liveness"):
        headers = {
            header["name"]: header["value"] for header in web[f"{name}Probe"]["httpGet"]["httpHeaders"]
        }
        assert headers["Host"] in data["touchstone"]["ALLOWED_HOSTS"].split(",")
        assert headers["X-Forwarded-Proto"] == "https"
    by_kind = {
        (manifest["kind"], manifest["metadata"]["name"]): manifest["spec"]
        for manifest in manifests()
        if "spec" in manifest
    }
    assert by_kind["Deployment", "touchstone-web"]["replicas"] == 2
    assert by_kind["PodDisruptionBudget", "touchstone-web"]["minAvailable"] == 1
    assert by_kind["Deployment", "touchstone-web"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    asks = set(re.findall(r"\{\$(\w+)", (REPOSITORY / "deploy" / "Caddyfile").read_text()))
    assert asks - {"SITE_BIND"} <= set(data["touchstone-front"])


def test_nobody_reaches_the_web_pods_but_the_front_door_and_prometheus():
    policies = {
        manifest["metadata"]["name"]: manifest["spec"]
        for manifest in manifests()
        if manifest["kind"] == "NetworkPolicy"
    }
    assert policies["nobody"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    open_to_all = [
        policy["podSelector"]["matchLabels"]["app"]
        for policy in policies.values()
        for rule in policy.get("ingress", [])
        if "from" not in rule
    ]
    assert open_to_all == ["touchstone-front"]
    to_web = policies["the-front-door-to-the-web"]["ingress"]
    assert [rule["ports"] for rule in to_web] == [[{"port": "http"}], [{"port": "metrics"}]]
    services = {
        manifest["metadata"]["name"]: manifest["spec"]
        for manifest in manifests()
        if manifest["kind"] == "Service"
    }
    assert [name for name, spec in services.items() if "type" in spec] == ["touchstone-front"]
    ports = {port["port"] for rule in policies["out"]["egress"] for port in rule.get("ports", [])}
    assert {5432, 6432, 6379, 443} <= ports, "PostgreSQL, a pooler, Redis, files"
