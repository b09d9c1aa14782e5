"""Evaluation with few or no judgments: AP from samples, expected AP, and how such methods are tested."""
