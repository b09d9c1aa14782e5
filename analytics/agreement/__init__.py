"""Agreement of tiers, and measures inferred from samples (Bailey and others)."""
