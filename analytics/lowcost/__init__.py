"""Numbers from few judgments, or none: pure."""
