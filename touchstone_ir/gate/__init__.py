"""A gate: is run B better than run A, with at most so many judgments?"""
