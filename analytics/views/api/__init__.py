"""What programs ask about the numbers of a campaign, its releases, and a run that somebody brings."""
