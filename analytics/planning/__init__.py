"""The cost of precision, the next purchase, and the effect of one more audit."""
