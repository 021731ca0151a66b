"""Pure analysis: frames in, results out. Nothing here reads files or prints."""
