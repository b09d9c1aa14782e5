"""Which documents are judged, and with which probabilities."""
