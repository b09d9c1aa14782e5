"""`touchstone gate`: start, next, answer, status. Results go to standard output, words on errors to standard error.

Every step ends with 0, or with 2 on bad input, and then nothing is changed. `status` has a code for each verdict: 0
better or not worse (with --require better: better), 1 worse, 3 judgments wanted, 4 undecided.
"""

import argparse
import sys
from pathlib import Path

from analytics.planning.gating import BETTER
from touchstone_ir.gate_state import OUTPUTS, GateState
from touchstone_ir.gate_steps import answer, next_batch, start, status
from touchstone_ir.grade_maps import FLAG, OPTION, grade_map

BAD_INPUT = 2
DESCRIPTION = (
    "Is run B better than run A? Judgments are asked for in batches, up to a cap or the first verdict."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the steps and their options."""
    parser.description = DESCRIPTION
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    def add_step(name: str, words: str) -> argparse.ArgumentParser:
        step = steps.add_parser(name, help=words, description=words)
        step.add_argument("folder", type=Path, metavar="G", help="the gate's folder")
        step.add_argument(
            "--output", choices=sorted(OUTPUTS), default="table", help="how the state is printed"
        )
        step.add_argument("--require", choices=[BETTER], default="", help="not worse is not enough")
        return step

    start_step = add_step("start", "Fix the question, in a new folder.")
    start_step.add_argument("--a", required=True, type=Path, metavar="RUN", help="the run that is there")
    start_step.add_argument(
        "--b", required=True, type=Path, metavar="RUN", help="the run that may replace it"
    )
    start_step.add_argument("--measure", required=True, help="a sum over documents, such as P@10")
    start_step.add_argument(
        "--labels", required=True, type=Path, metavar="QRELS", help="a fallible judge's grades"
    )
    start_step.add_argument(FLAG, **OPTION)
    start_step.add_argument(
        "--tolerance", type=float, default=0.0, help="how much worse is still not worse (0)"
    )
    start_step.add_argument("--cap", required=True, type=int, help="most pairs ever asked for; at least 20")
    start_step.add_argument("--plan", required=True, type=int, help="pairs that you expect to need")
    start_step.add_argument("--batch", type=int, default=10, help="expected pairs of a batch (10)")
    start_step.add_argument("--seed", required=True, type=int, help="of the random numbers")
    next_step = add_step("next", "Write the batch that is to be judged.")
    next_step.add_argument(
        "-o", "--out", required=True, type=Path, metavar="CSV", help="topic,doc and an empty grade"
    )
    next_step.add_argument(
        "--corpus", type=Path, metavar="FILE", help="documents, whose texts are written too"
    )
    answer_step = add_step("answer", "Take a batch with its grades, and look.")
    answer_step.add_argument("filled", type=Path, metavar="CSV", help="the batch with grades")
    add_step("status", "Say where the gate stands; the exit code is the verdict's.")


def run(options: argparse.Namespace) -> int:
    """Do the step, print where the gate stands, and return the exit code: of `status` the verdict's, else 0."""
    try:
        state = _do_step(options)
    except (OSError, ValueError) as error:
        print(f"touchstone gate: {error}", file=sys.stderr)
        return BAD_INPUT
    print(OUTPUTS[options.output](state))
    return state.exit_code if options.step == "status" else 0


def _do_step(options: argparse.Namespace) -> GateState:
    folder, require = options.folder, options.require
    if options.step == "start":
        names = ("a", "b", "measure", "labels", "tolerance", "cap", "plan", "batch", "seed")
        question = {name: getattr(options, name) for name in names}
        return start(folder, **question, grades=grade_map(options.grades))
    if options.step == "next":
        return next_batch(folder, options.out, options.corpus, require=require)
    if options.step == "answer":
        return answer(folder, options.filled, require=require)
    return status(folder, require=require)
