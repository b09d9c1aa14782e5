"""The API for API clients: one file per resource."""
