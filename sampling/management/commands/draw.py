import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from judging.models import Campaign
from judging.services.errors import Refused
from sampling.design_fields import DESIGN_FIELDS, DesignField, FieldKind
from sampling.measures.registry import suggested_designs
from sampling.outlook import USUAL_RATES, assumed_errors, floor_sentence, outlook_sentence
from sampling.questions import Design, parse_designed
from sampling.serializers.designs import draw_json
from sampling.services.calibrating import with_source
from sampling.services.drawing import draw
from sampling.services.forecasting import Preview, mixture_sentence, preview
from touchstone.files import where
from touchstone.models import Job

NAMES = {
    "default": "this design",
    "paper": "paper's Q*",
    "pool": "even pool",
    "naive": "naive",
    "even": "topics alike",
}


def _measure(field: DesignField) -> dict[str, Any]:
    examples = ", ".join(suggested_designs())
    return {"metavar": field.initial, "help": f"{field.help}: {examples}, ..."}


ERRORS = ("relevant documents judged not relevant", "the others judged relevant")
OPTIONS: dict[FieldKind, Callable[[DesignField], dict[str, Any]]] = {
    FieldKind.CHOICE: lambda field: {"choices": field.keys},
    FieldKind.RUNS: lambda field: {"nargs": "*", "metavar": "RUN"},
    FieldKind.MEASURE: _measure,
    FieldKind.COUNT: lambda field: {"type": int},
    FieldKind.SCORES: lambda field: {"metavar": "NAME"},
    FieldKind.SOURCE: lambda field: {"metavar": "NAME"},
    FieldKind.SHARE: lambda field: {"type": float, "metavar": "SHARE"},
}


class Command(BaseCommand):
    help = "Draw a campaign's items to judge, or one batch more; with --preview say what to expect and draw nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", help="the campaign's name or id")
        for field in DESIGN_FIELDS:
            option = {"help": field.help, **OPTIONS[field.kind](field)}
            option |= {"required": True} if field.is_required else {"default": field.default}
            parser.add_argument(f"--{field.name.replace('_', '-')}", **option)
        parser.add_argument("--seed", type=int, help="of a first batch; later ones keep it")
        for rate, usual, what in zip(("misses", "false-alarms"), USUAL_RATES, ERRORS, strict=True):
            words = f"share of {what}, assumed by the preview of the corrected number"
            parser.add_argument(f"--{rate}", type=float, default=usual, metavar="SHARE", help=words)
        parser.add_argument("--preview", action="store_true", help="say what the budget buys; draw nothing")
        parser.add_argument("--output", choices=["table", "json"], default="table")

    def handle(self, *, campaign: str, preview: bool, output: str, seed: int | None, **options: Any) -> None:
        with one_error():
            stored_campaign = find_campaign(campaign)
            design = with_source(stored_campaign, _design(options), user=None)
            if preview:
                if seed is not None:
                    raise CommandError("a preview has no seed: nothing is drawn")
                rates = options["misses"], options["false_alarms"]
                self.stdout.write(_preview_text(stored_campaign, design, rates, output))
            else:
                self.stdout.write(_draw_text(stored_campaign, design, seed, output))


@contextmanager
def one_error() -> Iterator[None]:
    try:
        yield
    except (Refused, ValueError) as refusal:  # also QuestionRefused
        raise CommandError(" ".join(str(refusal).split())) from refusal


def find_campaign(name: str) -> Campaign:
    campaigns = Campaign.objects.select_related("collection", "scale")
    campaign = campaigns.filter(name=name, deleted_at=None).first()
    if campaign is None:
        try:
            campaign = campaigns.filter(pk=uuid.UUID(name)).first()
        except ValueError:
            campaign = None
    if campaign is None:
        raise CommandError(f"there is no campaign {name!r}")
    return campaign


def _design(options: dict[str, Any]) -> Design:
    given = {field.name: options[field.name] for field in DESIGN_FIELDS}
    return Design(**given | {"measure": parse_designed(given["measure"], given["topic_selection"]).name})


def _preview_text(campaign: Campaign, design: Design, rates: tuple[float, float], output: str) -> str:
    relevant = design.parse_measure().relevant_grade or campaign.scale.relevant_grade
    errors = assumed_errors(len(campaign.scale.values()), relevant, rates)
    shown = preview(campaign=campaign, design=design, errors=errors)
    if output == "json":
        return json.dumps({"design": design.parameters(), **shown.as_json()}, indent=2)
    return preview_table(shown, design)


def preview_table(shown: Preview, design: Design) -> str:
    """Return expected half-widths, a row a budget, and what every design needs for the width at the budget."""
    has_corrected = bool(shown.corrected_widths)
    already = f", {shown.already:.0f} expected already" if shown.already else ""
    rows = [
        f"{shown.n_frame:,} pooled documents, {shown.n_question:,} matter for the question{already}",
        *([] if shown.n_topics is None else [f"about {shown.n_topics:,.0f} topics, each judged completely"]),
        f"expected half-width of the 95 % confidence interval in {design.measure} by the drawing alone:",
        f"judgments taken as free of error{'; corrected: with their errors, and the planned audit' * has_corrected}",
        "",
        _row("items", [*(NAMES[name] for name in shown.widths), *(["corrected"] * has_corrected)]),
    ]
    for place, budget in enumerate(shown.budgets):
        mark = " <" if budget == min(design.budget, shown.n_frame) else ""
        columns = [*shown.widths.values(), *([shown.corrected_widths] * has_corrected)]
        rows.append(_row(f"{budget:,}", [_number(widths[place], ".3g") for widths in columns]) + mark)
    rows += ["", _row("same width", [_number(shown.same_width.get(name), ",.0f") for name in shown.widths])]
    if shown.mixture is not None:
        rows += ["", mixture_sentence(shown.mixture, min(design.budget, shown.n_frame))]
    if shown.n_silent_topics:
        rows += ["", f"{shown.n_silent_topics:,} topics in which no document says anything of the question"]
    rows += ["", *filter(None, (outlook_sentence(shown.corrected), floor_sentence(*shown.floor)))]
    if any(width is None for widths in shown.widths.values() for width in widths):
        rows.append("         -  not reached in this design, however many are judged")
    return "\n".join(rows)


def _row(label: str, cells: list[str]) -> str:
    return f"{label:>10}" + "".join(f"{cell:>13}" for cell in cells)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _draw_text(campaign: Campaign, design: Design, seed: int | None, output: str) -> str:
    running = Job.objects.filter(
        kind="draw", payload__campaign=str(campaign.pk), state__in=Job.ACTIVE
    ).first()
    if running is not None:
        raise CommandError(f"a draw of this campaign is running already: job {running.pk}")
    made = draw(campaign=campaign, design=design, seed=seed)
    if output == "json":
        return json.dumps(draw_json(made, []), indent=2)
    return (
        f"batch {made.batch} of {campaign.name}: {made.n_drawn:,} of {made.n_frame:,} pooled documents drawn "
        f"(seed {made.seed})\nframe {where(made.frame)}\nsha256 {made.frame_sha256}"
    )
