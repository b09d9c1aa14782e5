"""From arrays to the numbers that are reported: what is asked of them, by every method, in columns."""
