"""What can be done to the facts: keyword-only, atomic; a refusal is an error named after the fact."""
