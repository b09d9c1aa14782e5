"""What the judgments say, and how surely."""
