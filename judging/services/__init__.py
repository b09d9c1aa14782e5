"""What can be done to the facts. Every function is keyword-only and atomic, and raises a `Refused` named after the fact."""
