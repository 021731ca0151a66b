"""Who won a phase, by how much, and why."""
