"""Retrieval evaluation with cheap labels and few gold ones: numbers whose error is known."""
