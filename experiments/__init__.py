"""Scripts of a checkout: runs, their tables and curves, and what is submitted."""
