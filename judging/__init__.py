"""The facts: who said what about which document."""
