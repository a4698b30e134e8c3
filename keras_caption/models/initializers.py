"""Initializers of kernels in official code that differ from Keras's.

The branches of post-norm blocks begin smaller than with Glorot's of each kernel, which
is Keras's default. With it, four blocks of a translator learn to make all positions of
the memory the same, and a co-attention network learns much more slowly.
"""

import keras

# PyTorch's linear layers.
LINEAR = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
# Queries, keys and values in fairseq: Glorot's of the three as one matrix.
PROJECTIONS = keras.initializers.VarianceScaling(1 / 2, "fan_avg", "uniform")
