"""Ask whether anything in the lock file has a known vulnerability.

    python .ci/audit.py [--service URL] [--lock FILE]

Ends with 0 where none is known, with 1 where one is, and with 2 where the lock file cannot be read. A service that
cannot be reached is no answer: the program says "not checked" with the reason, and ends with 0.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
SERVICE = "https://api.osv.dev/v1/query"
# What pip-audit ends with where the service cannot be reached, or answers with an error.
NO_ANSWER = re.compile(
    r"requests\.exceptions\.\w+|\S*(JSONDecodeError|ServiceError|ConnectionError)|ERROR.*Could not connect"
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--service", default=SERVICE, help="address of a service that speaks OSV's protocol")
    parser.add_argument("--lock", type=Path, default=REPOSITORY / "requirements.lock", help="the lock file")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(arguments.lock), "--require-hashes"]
    command += ["--disable-pip", "--vulnerability-service", "osv", "--osv-url", arguments.service]
    command += ["--progress-spinner", "off", "--format", "json", "--timeout", "10"]
    result = subprocess.run(command, capture_output=True, text=True)
    try:
        packages = json.loads(result.stdout)["dependencies"]
    except json.JSONDecodeError:
        return no_result(result.stderr.strip().splitlines()[-1])
    return report(packages)


def no_result(reason: str) -> int:
    """Say why nothing was learnt."""
    if NO_ANSWER.match(reason):
        print(f"not checked: the service gave no answer ({reason})")
        return 0
    print(f"not checked: {reason}", file=sys.stderr)
    return 2


def report(packages: list[dict[str, Any]]) -> int:
    """Print each known vulnerability, with the versions that mend it."""
    found = 0
    for package in packages:
        for fault in package.get("vulns", []):
            found += 1
            mended = ", ".join(fault["fix_versions"]) or "no version yet"
            print(f"{package['name']} {package['version']}: {fault['id']}, mended in {mended}")
    print(f"{len(packages)} packages checked, {found or 'no'} known vulnerabilities")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
