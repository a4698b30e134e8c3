r"""Compiles training and search for chips of a TPU, on a machine that has none.

    python experiments/benchmarks/for_tpu.py --models ngsan,aoanet

needs `libtpu` of the version that the installed JAX names: `pip install 'jax[tpu]'`.
Prints, from the compiler's own analysis: memory and operations of a chip, collective
operations, and what would be wrong on a TPU. A batch is sharded over the chips, with
equal rows; weights are on each. Nothing is run.
"""

import argparse
import collections
import dataclasses
import os
import re
import sys
import time

if "keras" not in sys.modules:
    os.environ["KERAS_BACKEND"] = "jax"
# No chip is used: none is looked for, and other programs may have the library too.
os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}

import jax
import keras
import numpy as np
from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec

import keras_caption as kc
from experiments.benchmarks.common import REGION_DIM, VOCABULARY_SIZE, arrays
from keras_caption.decoding import Decoding
from keras_caption.text import BOS

CHIPS = "v5e:2x2"
WORDS, CAPTIONS = 17, 5
BATCHES = {"cross-entropy": 50, "self-critical": 50, "beam search": 48}
# Targets of custom calls by which a program would wait for its host.
CALLS_HOST = re.compile(r'custom_call_target="[^"]*(callback|python|host)[^"]*"')
HOSTS = "infeed", "outfeed", "send", "recv"
COLLECTIVES = "all-reduce", "all-gather", "all-to-all", "collective-permute"


@dataclasses.dataclass
class Program:
    """What a compiled program of one chip does, by the compiler's own analysis.

    Attributes:
        host: int, number of operations by which it waits for its host.
        dynamic: int, number of tensors whose shape is known only when it runs.
        collectives: dict from collective operation to its number.
        memory: int, bytes of arguments, results and temporary tensors.
        operations: float, floating-point operations, those of loops' bodies once.
        seconds: float, CPU seconds of the compilation.
    """

    host: int
    dynamic: int
    collectives: dict
    memory: int
    operations: float
    seconds: float


def mesh_of(topology=CHIPS):
    """The chips of a topology in one row, whose axis is that of a batch."""
    chips = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    return topologies.make_mesh(chips, (len(chips.devices),), ("batch",))


def compiled(function, mesh, whole, sharded):
    """Compiles a function for the chips of a mesh.

    Args:
        function: Function of two nested structures of tensors.
        mesh: See `mesh_of`.
        whole: Arrays that are on each chip, such as weights.
        sharded: Arrays whose first axis is shared by the chips.

    Returns:
        `Program`.
    """

    def described(values, spec):
        sharding = NamedSharding(mesh, spec)

        def shape_of(x):
            dtype = jax.dtypes.canonicalize_dtype(x.dtype)
            return jax.ShapeDtypeStruct(x.shape, dtype, sharding=sharding)

        return jax.tree.map(shape_of, values)

    begun = time.process_time()
    lowered = jax.jit(function, donate_argnums=0).lower(
        described(whole, PartitionSpec()), described(sharded, PartitionSpec("batch"))
    )
    program = lowered.compile()
    seconds = time.process_time() - begun
    text, memory = program.as_text(), program.memory_analysis()
    found = collections.Counter(re.findall(r" ([a-z-]+?)(?:-start)?\(", text))
    analysis = program.cost_analysis()
    analysis = analysis[0] if isinstance(analysis, list) else analysis
    return Program(
        host=sum(found[name] for name in HOSTS) + len(CALLS_HOST.findall(text)),
        dynamic=len(re.findall(r"\[[^\]]*<=", text)),
        collectives={name: found[name] for name in COLLECTIVES if found[name]},
        memory=memory.argument_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes,
        operations=analysis.get("flops", 0.0),
        seconds=seconds,
    )


def step(trainer, mesh, batch):
    """Compiles the training step of a model, or of a trainer of one."""
    if not trainer.optimizer.built:
        trainer.optimizer.build(trainer.trainable_variables)
    state = tuple([v.value for v in group] for group in trainer.step_variables)
    return compiled(trainer.train_step, mesh, state, batch)


def cross_entropy(model, mesh, batch):
    """Compiles a step of cross-entropy on inputs with `tokens`."""
    model.compile(keras.optimizers.Adam(1e-4), model.loss)
    tokens = batch["tokens"]
    inputs = {**batch, "tokens": tokens[..., :-1]}
    return step(model, mesh, (inputs, tokens[..., 1:], tokens[..., 1:] > 0))


def self_critical(model, mesh, batch, samples=5, reward=None):
    """Compiles a self-critical step on inputs with `references`."""
    reward = reward or kc.rewards.CiderD.from_references(batch["references"])
    trainer = kc.training.SelfCritical(
        model, reward, samples=samples, max_length=batch["references"].shape[-1]
    )
    return step(trainer, mesh, (batch,))


def search(model, mesh, batch, **options):
    """Compiles a search; `options` are those of `Decoding`."""

    def found(values, inputs):
        with keras.StatelessScope(zip(model.variables, values, strict=True)):
            inputs = model.read(inputs)
            searched = model.search(Decoding(**options), inputs)
            return values, searched.run(model.encode(inputs))

    return compiled(found, mesh, [v.value for v in model.variables], batch)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0][3:])
    parser.add_argument("--models", default="ngsan,aoanet", help="names of captioners")
    parser.add_argument("--regions", default="36,100", help="regions of an image")
    parser.add_argument("--topology", default=CHIPS)
    options = parser.parse_args(arguments)
    mesh = mesh_of(options.topology)
    chips = mesh.size
    print("| model | regions | program | batch | GB of a chip | collectives | CPU s |")
    print("|---|---:|---|---:|---:|---|---:|")
    for name in options.models.split(","):
        for regions in map(int, options.regions.split(",")):
            for kind, rows in BATCHES.items():
                rows = -(-rows // chips) * chips
                keras.backend.clear_session()
                model = kc.models.create(
                    name, vocabulary_size=VOCABULARY_SIZE, region_dim=REGION_DIM
                )
                images, rng = arrays(rows, regions), np.random.default_rng(0)
                tokens = rng.integers(4, VOCABULARY_SIZE, (rows, CAPTIONS, WORDS + 1))
                tokens[..., 0] = BOS
                tokens = tokens.astype("int32")
                if kind == "cross-entropy":
                    program = cross_entropy(model, mesh, {**images, "tokens": tokens})
                elif kind == "self-critical":
                    references = tokens[..., 1:]
                    batch = {**images, "references": references}
                    program = self_critical(model, mesh, batch)
                else:
                    program = search(model, mesh, images, max_length=20)
                wrong = program.host + program.dynamic
                collectives = ", ".join(
                    f"{n} {k}" for k, n in program.collectives.items()
                )
                print(
                    f"| {name} | {regions} | {kind} | {rows} | "
                    f"{program.memory / 1e9:.2f} | {collectives or 'none'} | "
                    f"{program.seconds:.0f} |" + " waits for its host" * bool(wrong),
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
