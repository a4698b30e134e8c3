"""Scripts of a checkout: runs, tables of their scores, and submissions."""
