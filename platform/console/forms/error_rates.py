"""the assessors' error rates that a forecast assumes where no gold has measured them."""

from typing import Any

from django import forms

from sampling.outlook import USUAL_RATES

MISSES, FALSE_ALARMS = (round(100 * rate) for rate in USUAL_RATES)


def _percent(label: str, usual: int) -> forms.FloatField:
    return forms.FloatField(label=label, initial=usual, min_value=0, max_value=100, required=False)


class ErrorRatesForm(forms.Form):
    """Two shares in percent; what is not sent is the usual one."""

    misses = _percent("Misses, %", MISSES)
    false_alarms = _percent("False alarms, %", FALSE_ALARMS)

    def __init__(self, data: Any = None) -> None:
        if data is not None:
            data = data.copy()
            for name, field in ErrorRatesForm.base_fields.items():
                data.setdefault(name, field.initial)
        super().__init__(data)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name, field in self.fields.items():
            if cleaned.get(name) is None and name not in self.errors:
                cleaned[name] = float(field.initial)
        if not self.errors and cleaned["misses"] + cleaned["false_alarms"] >= 100:
            self.add_error(
                "false_alarms",
                "the two together must stay below 100 %: otherwise labels say nothing, or the opposite",
            )
        return cleaned

    def shares(self) -> tuple[float, float]:
        """Return misses and false alarms as shares."""
        return self.cleaned_data["misses"] / 100, self.cleaned_data["false_alarms"] / 100

    def pairs(self) -> list[tuple[str, str]]:
        """Return names and values for an address."""
        return [(name, f"{self.cleaned_data[name]:.9g}") for name in self.fields]
