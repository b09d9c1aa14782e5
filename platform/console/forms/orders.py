"""The field of forms in which the order of judging is chosen."""

from django import forms

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
