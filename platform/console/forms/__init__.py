"""The forms of managers."""
