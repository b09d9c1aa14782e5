"""deploy/alerts.yml: what each alert needs, its remedy, and Prometheus' own test of when it fires."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
DEPLOY = REPOSITORY / "deploy"
OPERATIONS = (REPOSITORY / "docs" / "operations.md").read_text()
(GROUP,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
RULES = {rule["alert"]: rule for rule in GROUP["rules"]}
METRIC = re.compile(r"\btouchstone_[a-z_]+")


def section(title, level="##"):
    text = OPERATIONS.partition(f"\n{level} {title}\n")[2]
    return re.split(rf"\n#{{2,{len(level)}}} ", text)[0]


def documented_metrics():
    """The names in the table of metrics, which tests/touchstone/test_metrics.py compares with a scrape."""
    cells = re.findall(r"^\| (`touchstone_[^|]+)", section("Metrics"), flags=re.MULTILINE)
    return set(METRIC.findall(" ".join(cells)))


@pytest.mark.parametrize("name", RULES)
def test_every_alert_has_a_remedy_in_steps(name):
    assert RULES[name]["annotations"]["remedy"] == f"docs/operations.md#{name.lower()}"
    assert "\n1. " in section(name, "###"), "what to do first"
    assert RULES[name]["labels"]["severity"] in ("page", "ticket")


def test_every_remedy_is_of_an_alert():
    assert set(re.findall(r"^### (Touchstone\w+)$", OPERATIONS, flags=re.MULTILINE)) == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_every_metric_that_an_alert_needs_exists(name):
    needed = set(METRIC.findall(RULES[name]["expr"]))
    assert needed
    assert needed <= documented_metrics()


def test_a_metric_that_does_not_exist_is_noticed():
    """The control."""
    assert not {"touchstone_site_upp"} <= documented_metrics()


@pytest.fixture(scope="module")
def promtool():
    found = shutil.which("promtool")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("promtool is missing: apt-get install --no-install-recommends prometheus")
        pytest.skip("promtool is not installed (Debian's package prometheus)")
    return found


def rules_test(promtool, folder):
    return subprocess.run(
        [promtool, "test", "rules", "alerts_test.yml"], cwd=folder, capture_output=True, text=True
    )


def test_the_alerts_fire_when_they_should(promtool):
    done = rules_test(promtool, DEPLOY)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("name", RULES)
def test_an_alert_that_never_fires_or_always_does_is_noticed(promtool, name, tmp_path):
    """The control: the test above fails for each alert whose expression is another."""
    shutil.copy(DEPLOY / "alerts_test.yml", tmp_path)
    for expression in ("vector(1) > 2", "vector(1)"):
        rules = [{**rule, "expr": expression} if rule["alert"] == name else rule for rule in RULES.values()]
        changed = {"groups": [{**GROUP, "rules": rules}]}
        (tmp_path / "alerts.yml").write_text(yaml.safe_dump(changed))
        assert rules_test(promtool, tmp_path).returncode != 0
