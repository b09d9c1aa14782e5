"""Pages that show numbers: `manage` for managers, `research` for researchers."""
