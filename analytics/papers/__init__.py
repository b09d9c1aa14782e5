"""The papers' corrections: Goldberg's formulas, the matrix inverse, calibration, and the test of what they assume."""
