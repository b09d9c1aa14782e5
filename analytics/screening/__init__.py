"""Screening: what the log of the judgments shows of an assessor, and how surely."""
