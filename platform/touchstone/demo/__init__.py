"""Data of the demonstration: a collection every machine has, topics, grades, runs and simulated assessors."""
