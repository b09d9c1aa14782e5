"""The API of programs, a file a resource."""
