"""The statistics behind every reported number: estimators, corrections, intervals and tests, on arrays alone."""
