"""Scripts of a checkout: runs, their tables, and what is submitted."""
