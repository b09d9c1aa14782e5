"""The facts for programs: everything a screen of judging does, under /api/v1/.

Pages of lists, filters, scopes, rate limits and the form of errors come from settings.py; here is what one may ask.
"""
