"""Settings that need no Keras: the options of decoding, and the values of a run."""
