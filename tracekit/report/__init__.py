"""Results as text: nothing is computed here, only worded, aligned and written."""
