"""What a person is shown of each answer, the same for tables and markdown."""
