"""What can be set, without Keras: the options of decoding, and the values of a run."""
