"""`python -m touchstone_ir.gate`: the gate alone, as `touchstone gate` has it."""

import argparse
import sys

from touchstone_ir.gate.command import add_arguments, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="touchstone gate")
    add_arguments(parser)
    sys.exit(run(parser.parse_args()))
