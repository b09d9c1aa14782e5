"""`python -m touchstone_ir.gates`: the gate alone, as `touchstone gate` has it."""

import argparse
import sys
from collections.abc import Sequence

from touchstone_ir.gates.command import add_arguments, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the step that the arguments name, and return the exit code."""
    parser = argparse.ArgumentParser(prog="touchstone gate")
    add_arguments(parser)
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
