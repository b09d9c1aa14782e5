"""Which items a campaign judges (`drawing`), and which of them the gold tier judges again (`auditing`)."""
