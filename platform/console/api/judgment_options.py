"""What an import of judgments is told besides its files."""

from judging.gold_choices import gold_choice_keys
from judging.samples import METHOD_CODES
from judging.serializers.strict import Choice, Flag, Strict, Word
from judging.services.judgment_formats import REPEATS


class JudgmentOptions(Strict):
    """Options of judgments, gold answers and samples; the import refuses what contradicts itself."""

    as_gold = Flag(
        required=False, help_text="Whether the judgments become gold answers; otherwise name a campaign."
    )
    source_name = Word(max_length=100, required=False, help_text="Source of the grades.")
    grade_map = Word(
        max_length=500, required=False, help_text="Only for judgments: map of grades, for example 2=1,3=1"
    )
    method_codes = Choice(
        choices=METHOD_CODES,
        required=False,
        help_text="Only for prels: probabilities as recorded, or as the Million Query track's program takes them.",
    )
    complete = Flag(
        required=False,
        help_text="Only for judgments: whether the file is all there is. By default so where the campaign has nothing "
        "yet.",
    )
    repeats = Choice(
        choices=list(REPEATS),
        required=False,
        help_text="Only for judgments: what to do where an assessor graded a pair twice.",
    )
    gold_chosen = Choice(
        choices=gold_choice_keys(),
        required=False,
        help_text="Only for gold answers of a campaign: how their documents were chosen among the judged ones.",
    )
    by_topic = Flag(required=False, help_text="Whether gold was chosen uniformly within every topic.")
