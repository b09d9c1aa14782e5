"""The demonstration's data: a collection every machine has, our topics and grades, real runs, simulated assessors."""
