"""The fields of forms in which the order of judging and the grades of checks are chosen."""

from django import forms

from judging.check_grades import CHECK_GRADES, check_grades_choices
from judging.judging_orders import JUDGING_ORDERS, judging_order_choices


class JudgingOrderField(forms.ChoiceField):
    """In which order items are judged; what is not sent stays as it is."""

    def __init__(self) -> None:
        super().__init__(
            label="Order of judging, fixed with the draw", required=False, choices=judging_order_choices
        )

    @property
    def sentence(self) -> str:
        """Return what each order does."""
        return " ".join(f"{order.label}: {order.help}" for order in JUDGING_ORDERS)


class CheckGradesField(forms.ChoiceField):
    """Which grades gold checks have; what is not sent stays as it is."""

    def __init__(self) -> None:
        super().__init__(label="Grades of checks", required=False, choices=check_grades_choices)

    @property
    def sentence(self) -> str:
        """Return what each choice does."""
        return " ".join(f"{way.label}: {way.help}." for way in CHECK_GRADES)
