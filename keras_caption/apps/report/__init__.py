"""Reports and figures of runs, and captions as they are shown."""
