"""What all parts stand on: errors, checks of arguments, files, compilation."""
