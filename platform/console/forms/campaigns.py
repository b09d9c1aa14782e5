"""Forms of the manager's pages."""

from collections.abc import Sequence
from typing import Any

from django import forms

from console.forms.orders import CheckGradesField, JudgingOrderField
from judging.check_grades import AT_MOST
from judging.judging_orders import RANDOM_ORDER, refused_judgments
from judging.models import Assessor, Campaign, Collection, Topic
from judging.prompts import check_prompt
from judging.services.campaigns import DEFAULT_GRADES
from judging.services.messages import LONGEST as LONGEST_MESSAGE
from touchstone.models import User

LONGEST_TEAM = 60
LONGEST_TEXT = 100_000  # characters of guidelines and prompts
NAMED_IN_AN_ERROR = 5


class NamedForm(forms.ModelForm):  # type: ignore[type-arg]  # Django takes none when it runs
    """A form of something whose name is unique among what is not deleted.

    Django's own check passes over a constraint whose condition is on a field that the form lacks.
    """

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        named = type(self.instance)._default_manager.filter(name=name, deleted_at=None)
        if named.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError("This name is already taken; choose another one.")
        return name


class CollectionForm(NamedForm):
    class Meta:
        model = Collection
        fields = ["name", "description", "source", "licence", "may_publish_documents"]
        widgets = {
            "description": forms.Textarea(attrs={"rows": 3}),
            "source": forms.Textarea(attrs={"rows": 2}),
        }
        labels = {
            "source": "Source",
            "licence": "Licence of the documents",
            "may_publish_documents": "Releases may contain the texts of the documents",
        }


CAMPAIGN_LABELS = {
    "judgments_per_item": "Judgments per item",
    "lease_seconds": "Seconds for which an item is reserved for its assessor",
    "gold_check_rate": "Share of unannounced gold checks (0 to 0.5)",
    "gold_check_exposures": "Total exposures of one gold check, at most",
    "decoys_per_check": "Decoys for each repeated check (0 to 5)",
    "highlights_terms": "Highlight the words of the topic in the document",
    "break_minutes": "Minutes of judging before a break is suggested",
    "pause_below": "Pause an assessor without asking if a flag's adjusted p is below",
}


class LongText(forms.CharField):
    """A text of several lines, its ends as the database keeps them: browsers send CR LF."""

    def __init__(self, *, label: str, rows: int) -> None:
        widget = forms.Textarea(attrs={"rows": rows})
        super().__init__(label=label, max_length=LONGEST_TEXT, required=False, widget=widget)

    def to_python(self, value: Any) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class CampaignTexts(NamedForm):
    guidelines = LongText(label="Guidelines (Markdown)", rows=6)
    machine_prompt = LongText(label="Prompt of machine assessors", rows=8)

    def clean_judging_order(self) -> str:
        return str(self.cleaned_data["judging_order"] or self.initial.get("judging_order", RANDOM_ORDER))

    def clean_check_grades(self) -> str:
        return str(self.cleaned_data["check_grades"] or self.initial.get("check_grades", AT_MOST.key))

    def clean_machine_prompt(self) -> str:
        prompt: str = self.cleaned_data["machine_prompt"]
        try:
            if prompt:
                check_prompt(prompt)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error
        return prompt


class CampaignForm(CampaignTexts):
    """A campaign with its scale: one line a grade, `value | label | gain`."""

    grades = forms.CharField(
        label="Grades (one per line: value | label | gain)",
        widget=forms.Textarea(attrs={"rows": 4}),
        initial="\n".join(f"{value} | {label} | {gain:g}" for value, label, gain in DEFAULT_GRADES),
    )
    relevant_grade = forms.IntegerField(label="Lowest relevant grade", min_value=1, max_value=9, initial=1)
    judging_order = JudgingOrderField()
    check_grades = CheckGradesField()

    class Meta:
        model = Campaign
        fields = [
            "collection",
            "name",
            "guidelines",
            "judgments_per_item",
            "judging_order",
            "lease_seconds",
            "gold_check_rate",
            "gold_check_exposures",
            "decoys_per_check",
            "check_grades",
            "highlights_terms",
            "break_minutes",
            "machine_prompt",
        ]
        labels = CAMPAIGN_LABELS

    def __init__(self, *arguments: Any, user: User, **named: Any) -> None:
        """`user` makes it: only what they may see can be judged."""
        super().__init__(*arguments, **named)
        field = self.fields["collection"]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101 (it is one)
        field.queryset = Collection.objects.visible_to(user).order_by("name")

    def clean_grades(self) -> list[tuple[int, str, float]]:
        grades = []
        for number, line in enumerate(filter(str.strip, self.cleaned_data["grades"].splitlines()), start=1):
            try:
                value, label, gain = (part.strip() for part in line.split("|"))
                grades.append((int(value), label, float(gain)))
            except ValueError as error:
                raise forms.ValidationError(
                    f"line {number}: expected 'value | label | gain', got {line!r}"
                ) from error
        values = [value for value, _, _ in grades]
        if values != list(range(len(values))) or not 2 <= len(values) <= 10:
            raise forms.ValidationError(f"enter two to ten grades: 0, 1, 2, ... in order; got {values}")
        if any(not label or len(label) > 60 for _, label, _ in grades):
            raise forms.ValidationError("every grade needs a label of at most 60 characters")
        if any(not 0 <= gain < 1e9 for _, _, gain in grades):
            raise forms.ValidationError("gains must be 0 or more, and finite")
        return grades

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("grades") and cleaned.get("relevant_grade", 1) >= len(cleaned["grades"]):
            self.add_error("relevant_grade", "must not be above the highest grade")
        reason = refused_judgments(cleaned.get("judging_order", ""), cleaned.get("judgments_per_item") or 1)
        if reason:
            self.add_error("judging_order", reason)
        return cleaned


class AssessorForm(forms.Form):
    username = forms.RegexField(r"^[\w.@+-]{1,150}$", label="User name")
    tier = forms.ChoiceField(choices=Assessor.Tier.choices, initial=Assessor.Tier.BRONZE)


class CampaignEditForm(CampaignTexts):
    """What may be changed after the draw: nothing that a probability or a stored judgment rests on.

    The order of judging may be chosen until there are items.
    """

    judging_order = JudgingOrderField()
    check_grades = CheckGradesField()

    class Meta:
        model = Campaign
        fields = [
            "name",
            "guidelines",
            "judging_order",
            "check_grades",
            "lease_seconds",
            "break_minutes",
            "pause_below",
            "highlights_terms",
            "machine_prompt",
        ]
        labels = CAMPAIGN_LABELS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if self.instance.items.exists():
            del self.fields["judging_order"]

    def clean_judging_order(self) -> str:
        order = super().clean_judging_order()
        if reason := refused_judgments(order, self.instance.judgments_per_item):
            raise forms.ValidationError(reason)
        return order

    def changes(self) -> dict[str, Any]:
        """Return the fields that really changed, so that nobody's other change is written over.

        A choice that was not sent counts as different from its initial value, and has been cleaned to it.
        """
        new = {name: self.cleaned_data[name] for name in self.changed_data}
        return {name: value for name, value in new.items() if value != self.initial.get(name)}


class AssessorRulesForm(forms.Form):
    """How much an assessor judges, in which team, and which topics come first."""

    quota = forms.IntegerField(
        label="Quota of judgments", min_value=1, max_value=2_147_483_647, required=False
    )
    team = forms.CharField(
        label="Team",
        max_length=LONGEST_TEAM,
        required=False,
        widget=forms.TextInput(attrs={"list": "teams"}),
    )
    first_topics = forms.CharField(
        label="Topics given first",
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )

    def __init__(self, *arguments: Any, assessor: Assessor, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.assessor = assessor

    def clean_first_topics(self) -> list[Topic]:
        """Return the topics in the order of their ids; an id that the collection does not know is refused by name."""
        words = self.cleaned_data["first_topics"].split()
        asked = {part for word in words for part in (word, *word.split(",")) if part}
        known = {
            topic.topic_id: topic
            for topic in Topic.objects.filter(
                collection_id=self.assessor.campaign.collection_id, topic_id__in=asked
            ).order_by("topic_id")
        }
        chosen: set[str] = set()
        unknown: list[str] = []
        for word in words:
            # A comma parts ids, unless the whole word is one: ids may contain commas.
            for part in [word] if word in known else filter(None, word.split(",")):
                (chosen.add if part in known else unknown.append)(part)
        if unknown:
            raise forms.ValidationError(_no_such_topics(list(dict.fromkeys(unknown))))
        return [topic for topic_id, topic in known.items() if topic_id in chosen]


def _no_such_topics(ids: Sequence[str]) -> str:
    named = ", ".join(topic_id[:60] for topic_id in ids[:NAMED_IN_AN_ERROR])
    more = f" and {len(ids) - NAMED_IN_AN_ERROR} more" if len(ids) > NAMED_IN_AN_ERROR else ""
    return f"the collection has no topic {named}{more}"


class TopicTeamsForm(forms.Form):
    """A team a topic, for the topics of one page."""

    def __init__(self, *arguments: Any, teams: dict[int, str], **named: Any) -> None:
        super().__init__(*arguments, **named)
        for topic, team in teams.items():
            self.fields[self.name_of(topic)] = forms.CharField(
                max_length=LONGEST_TEAM,
                required=False,
                initial=team,
                widget=forms.TextInput(attrs={"list": "teams"}),
            )

    @staticmethod
    def name_of(topic: int) -> str:
        return f"team-{topic}"

    def teams(self) -> dict[int, str]:
        """Return topic pk -> team name where it was changed."""
        return {int(name.removeprefix("team-")): self.cleaned_data[name] for name in self.changed_data}


class RequeueForm(forms.Form):
    """Typed, not clicked: the user name of the assessor whose judgments are set aside."""

    confirmation = forms.CharField(label="Type the user name to confirm", max_length=150)

    def __init__(self, *arguments: Any, assessor: Assessor, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.assessor = assessor

    def clean_confirmation(self) -> str:
        name: str = self.cleaned_data["confirmation"]
        if name != self.assessor.user.get_username():
            raise forms.ValidationError("The name does not match. Nothing was changed.")
        return name


class MessageForm(forms.Form):
    """A manager's message to an assessor."""

    text = forms.CharField(
        label="Message", max_length=LONGEST_MESSAGE, widget=forms.Textarea(attrs={"rows": 3})
    )


class ConfirmationForm(forms.Form):
    """Typed, not clicked: the name of what is deleted."""

    confirmation = forms.CharField(label="Type the name to confirm", max_length=100)

    def __init__(self, *arguments: Any, name: str, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.name = name

    def clean_confirmation(self) -> str:
        typed: str = self.cleaned_data["confirmation"]
        if typed != self.name:
            raise forms.ValidationError("The name does not match. Nothing was deleted.")
        return typed


class MembersForm(forms.Form):
    """Who may see a collection: everybody who manages or researches here, or those who are named."""

    is_restricted = forms.BooleanField(label="Only members may see this collection", required=False)
    members = forms.CharField(
        label="Members, one user name per line",
        max_length=50_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
    )

    def clean_members(self) -> list[User]:
        names = list(dict.fromkeys(self.cleaned_data["members"].split()))
        known = {user.get_username(): user for user in User.objects.filter(username__in=names)}
        unknown = [name for name in names if name not in known or not known[name].may_research]
        if unknown:
            named = ", ".join(name[:60] for name in unknown[:NAMED_IN_AN_ERROR])
            raise forms.ValidationError(f"no manager or researcher is called {named}")
        return [known[name] for name in names]
