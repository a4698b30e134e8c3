import itertools
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


def compile_from_second_call(function: Callable, variables: list) -> Callable:
    """`function`, compiled, but a first call of one example runs eagerly.

    A deep network takes much longer to trace than to run once, and once is all that
    one photo needs. A larger batch does not run eagerly, for then the outputs of all
    layers stay in memory. JAX would compile each operation of an eager call by itself:
    there the first call is compiled too.
    """
    compiled = compile_function(function, variables)
    if keras.backend.backend() != "tensorflow":
        return compiled
    is_first = itertools.chain([True], itertools.repeat(False))

    def call(*args):
        is_eager = next(is_first) and len(keras.tree.flatten(args)[0]) == 1
        return (function if is_eager else compiled)(*args)

    return call
