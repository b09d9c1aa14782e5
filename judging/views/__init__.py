"""Pages and API of judging: `assess` for assessors, `manage` for managers."""
