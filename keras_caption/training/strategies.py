"""Distribution strategies: one device, several, or several machines."""

from typing import Any

from keras_caption.base.errors import InputError, missing_extras


def make_strategy(name: str) -> Any:
    """Makes a distribution strategy by name.

    Args:
        name: str: `"one_device"`; `"mirrored"`, all GPUs of the machine;
            `"multi_worker"`, the workers that the environment variable TF_CONFIG lists;
            or `"tpu"`.

    Returns:
        `tf.distribute.Strategy`.
    """
    with missing_extras():
        import tensorflow as tf

    if name == "mirrored":
        return tf.distribute.MirroredStrategy()
    if name == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    return tf.distribute.get_strategy()


def is_chief(strategy: Any) -> bool:
    """Returns whether this process is the worker that writes files.

    That is the chief of the cluster or, without a chief, the first worker.
    """
    resolver = strategy.cluster_resolver
    if resolver is None or resolver.task_type == "chief":
        return True
    if resolver.task_id or resolver.task_type not in (None, "", "worker"):
        return False
    import tensorflow as tf

    # A pod of TPUs has no chief; asking for its specification needs the network.
    is_pod = isinstance(resolver, tf.distribute.cluster_resolver.TPUClusterResolver)
    return is_pod or "chief" not in resolver.cluster_spec().as_dict()


def wait_for_all(strategy: Any) -> None:
    """Blocks until all workers have called it.

    Workers then read no file before the chief has written it.
    """
    on_any_worker(strategy, False)


def on_any_worker(strategy: Any, flag: bool) -> bool:
    """Returns whether a flag is set on any worker, once all workers have called it."""
    import tensorflow as tf

    from keras_caption.base.replicas import sum_over_replicas

    # A sum over replicas returns only when every worker has sent its part.
    def count():
        return sum_over_replicas(tf.constant(float(flag)))

    counts = tf.function(strategy.run, autograph=False)(count)
    return float(strategy.experimental_local_results(counts)[0]) > 0


def whole_batches(examples: int, batch_size: int, replicas: int, noun: str) -> int:
    """Computes the number of whole batches in an epoch.

    Args:
        examples: int, number of examples of an epoch.
        batch_size: int, number of examples of a batch.
        replicas: int, number of replicas that share a batch.
        noun: str, name of the examples in messages.

    Raises:
        InputError: If there are fewer examples than a batch has, or the replicas cannot
            share a batch evenly.
    """
    if batch_size % replicas:
        raise InputError(
            f"A batch of {batch_size} {noun} cannot be shared evenly by {replicas} "
            "replicas."
        )
    if examples < batch_size:
        raise InputError(
            f"A batch of {batch_size} {noun} is more than the {examples} there are to "
            "train on."
        )
    return examples // batch_size
