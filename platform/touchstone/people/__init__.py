"""What the system holds about a person: taken out into a file, and taken out of the system."""
