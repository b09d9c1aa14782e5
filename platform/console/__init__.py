"""All pages of managers and researchers, and the API: imports every app, and only the roof names it."""
