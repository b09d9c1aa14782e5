"""What precision costs, what to buy next, and what one more audit would narrow."""
