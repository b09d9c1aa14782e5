"""`touchstone`: the library as one command. Results go to standard output, words on them to standard error.

Exit codes: 0 done, 2 bad input, 5 every row is a refusal; of `verify` 1 on a difference; of `gate` its verdict's.
"""

import argparse
import sys
from collections.abc import Sequence

from judging.formats import MissingPackageError
from touchstone_ir.command_parts import BAD_INPUT, DONE, add_all
from touchstone_ir.commands import COMMANDS
from touchstone_ir.fault_places import with_place
from touchstone_ir.grade_maps import joined_grades
from touchstone_ir.kept_files import require_other_output


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    whole = argparse.ArgumentParser(
        prog="touchstone", description="Evaluate retrieval systems with cheap labels and few gold ones."
    )
    choices = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        one = choices.add_parser(command.name, help=command.help, description=command.help)
        if command.add is not None:
            command.add(one)
        add_all(one, command.arguments)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say, and return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(list(joined_grades(given)))
    command = next(one for one in COMMANDS if one.name == options.command)
    try:
        require_other_output(vars(options))
        return command.run(options)
    except BrokenPipeError:  # whoever read the result has enough of it
        return DONE
    except (OSError, ValueError, MissingPackageError) as error:
        print(f"touchstone {command.name}: {with_place(error, vars(options))}", file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
