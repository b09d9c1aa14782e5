"""One grade from many labels: votes, fitted models of assessors, accelerated."""
