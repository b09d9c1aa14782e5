"""What a release is made of: its tables, hashes, descriptions; and how it is read and checked. No database here."""
