"""Evaluation measures: the families, how their names are spelled, and how runs are scored."""
