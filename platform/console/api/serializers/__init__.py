"""What the API is asked and what it answers."""
