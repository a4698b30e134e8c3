"""The norm "noise": queries as they are, with the noise of "instance_noisy".

    python experiments/run.py --import experiments/papers/noise.py --model san \
        --config.model.query_norm=noise

What noisy normalized queries gain over this is the normalization's, not the noise's.
"""

from keras_caption.layers import NORMS, InstanceNormalization

NORMS["noise"] = lambda affine, **kwargs: InstanceNormalization(
    affine, centred=False, scaled=False, noise=0.5, **kwargs
)
