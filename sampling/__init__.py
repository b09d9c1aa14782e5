"""Which documents deserve a human."""
