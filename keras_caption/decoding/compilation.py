from collections.abc import Callable

import keras


def compile_function(function: Callable, variables: list) -> Callable:
    """`function` as one compiled graph of the running backend.

    Args:
        function: Function of nested structures of tensors, in `keras.ops`.
        variables: The Keras variables that it reads.

    Returns:
        A function of the same arguments. Under PyTorch, which runs it eagerly,
        it records no gradients.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(function, autograph=False, reduce_retracing=True)
    if keras.backend.backend() == "jax":
        import jax

        @jax.jit
        def stateless(values, *args):
            with keras.StatelessScope(zip(variables, values, strict=True)):
                return function(*args)

        return lambda *args: stateless([v.value for v in variables], *args)

    import torch

    return torch.no_grad()(function)
