"""Write what the product consists of as a CycloneDX bill of materials: the lock file's packages, with their hashes.

    python .ci/sbom.py [FILE]

The same lock file gives the same bytes. Without FILE it goes to standard output.
"""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def main(target: str = "-") -> int:
    """Write the bill of materials, and return the exit code."""
    if target != "-":
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    # The lock file says what is there, not who needs whom; the writer warns of that.
    command = [sys.executable, "-W", "ignore::UserWarning", "-m", "cyclonedx_py", "requirements"]
    command += ["--pyproject", str(REPOSITORY / "pyproject.toml"), "--mc-type", "application"]
    command += ["--output-reproducible", "--spec-version", "1.6", "--validate", "--output-file", target]
    # A time in the file would make it differ each day.
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    return subprocess.run([*command, str(REPOSITORY / "requirements.lock")], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
