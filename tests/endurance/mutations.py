"""Changes critical lines one by one; each change must make its tests fail.

    python tests/endurance/mutations.py [--only decoding/] [--limit 300]

A line of the table is a file of the package, a text that occurs once in it, what
replaces the text, and the tests that must fail. A mutation lives in a child process
alone: no file is written, and the child inherits the imports of TensorFlow. The tests
must pass without a mutation first. Survivors are listed at the end, with exit status 1.

About 25 minutes on two busy cores, 10 to 60 seconds for each mutation.
"""

import argparse
import contextlib
import importlib.machinery
import os
import pathlib
import signal
import sys
import time

TESTS = pathlib.Path(__file__).parents[1]
PACKAGE = TESTS.parent / "keras_caption"
sys.path[:0] = [str(TESTS.parent)]

MULTI_HEAD = "layers/multi_head_attention.py"
HEADS = "layers/test_multi_head_attention.py"
AREAS = "layers/area_memory.py", "layers/test_area.py"
GEOMETRY = "layers/geometry_bias.py", "layers/test_geometry.py"
NORM = "layers/instance_normalization.py", "layers/test_normalization.py"
DECODER = "layers/transformer_decoder_block.py", HEADS
OPTION = "decoding/test_references.py::test_every_option_is_its_reference[{}]".format
BEAM = "decoding/beam.py", "decoding/test_decoding.py -k beam"
SCST = "training/self_critical.py", "training/test_self_critical.py -k gradient"
MEANS = "base/replicas.py", "training/test_self_critical.py -k gradient"
CIDER = "rewards/cider_d.py", "rewards/test_cider_d.py -k pycocoevalcap"
TRAINING = "training/test_training.py"
NEED_EVIDENCE = "objects/test_evidence.py -k need_evidence"
EVIDENCE = "apps/objects/evidence.py", NEED_EVIDENCE
CONTEXT = "apps/objects/evidence_context.py", NEED_EVIDENCE
ADMISSIBLE = "objects/test_evidence.py -k nothing_else"

MUTATIONS = [  # (file, tests), text, replacement
    # === Masks and scores of attention ===
    (
        (MULTI_HEAD, HEADS),
        "ops.where(ops.expand_dims(mask, 1), scores, MASKED_SCORE)",
        "scores",
    ),
    ((MULTI_HEAD, HEADS), "self.key_dim**-0.5", "self.key_dim**0.5"),
    (
        (MULTI_HEAD, HEADS),
        "scores = scores + ops.cast(bias",
        "scores = scores - ops.cast(bias",
    ),
    (
        (MULTI_HEAD, HEADS),
        "query_mask if value_mask is None else value_mask",
        "query_mask",
    ),
    (("layers/sockets.py", HEADS), "logical_and(value_mask", "logical_or(value_mask"),
    (DECODER, "(positions, 1) >= positions", "(positions, 1) > positions"),
    (DECODER, "positions <= index", "positions < index"),
    (
        ("layers/transformer_decoder_block.py", "decoding/test_decoding.py -k shapes"),
        "x if grows else",
        "x[:, :, 1:] if grows else",
    ),
    (
        ("layers/transformer_decoder_block.py", "decoding/test_decoding.py -k shapes"),
        "expand_dims(places, 1) == places",
        "expand_dims(places, 1) >= places",
    ),
    (
        ("layers/attention_pooling.py", "models/test_mcan.py"),
        "ops.where(mask, scores, MASKED_SCORE)",
        "scores",
    ),
    (
        ("layers/attention_on_attention.py", "models/test_aoanet.py"),
        "information * ops.sigmoid",
        "information + ops.sigmoid",
    ),
    (
        ("layers/length_temperature.py", "models/test_grid_transformer.py"),
        "ops.any(mask, axis=1)",
        "ops.all(mask, axis=1)",
    ),
    (
        ("layers/masked_mean.py", "models/test_aoanet.py"),
        'ops.sum(ops.cast(valid, "float32"), axis=1)',
        'ops.sum(ops.ones_like(items[..., :1], "float32"), axis=1)',
    ),
    (
        ("layers/unbiased_layer_normalization.py", "models/test_aoanet.py"),
        "x.shape[-1] - 1",
        "x.shape[-1]",
    ),
    # === Areas, geometry and normalization ===
    (AREAS, "return a * b", "return a + b"),
    (AREAS, "(n * m / (n + m))", "(n / (n + m))"),
    (AREAS, "[size - 1 :]", "[size:]"),
    (AREAS, "total / (height * width)", "total / (height + width)"),
    (AREAS, "members / ops.sum(members, axis=-1, keepdims=True)", "members"),
    (GEOMETRY, "ops.log(sides_i) - ops.log", "ops.log(sides_i) + ops.log"),
    (GEOMETRY, "MIN_SIDE = 1e-4", "MIN_SIDE = 0.0"),
    (GEOMETRY, '"bjhg,bijg->bhij"', '"bihg,bijg->bhij"'),
    (NORM, "ops.where(valid, items - mean, 0.0)", "items - mean"),
    (NORM, "ops.maximum(count, 1.0)", "count"),
    (NORM, "rsqrt(variance + self.epsilon)", "rsqrt(variance)"),
    # === Searches ===
    (
        ("decoding/rules.py", OPTION("greedy_scores")),
        "if x != UNK or not allow_unk",
        "if x != UNK",
    ),
    (
        ("decoding/rules.py", OPTION("min_length")),
        "step.index < column(min_length)",
        "step.index <= column(min_length)",
    ),
    (
        ("decoding/rules.py", "models/test_translator_searches.py -k limited"),
        "column(limits) - 1",
        "column(limits)",
    ),
    (
        ("decoding/rules.py", OPTION("no_repeat_ngram")),
        "size - 1 + starts) < index",
        "size - 1 + starts) < index - 1",
    ),
    (
        ("decoding/rules.py", OPTION("repetition_penalty")),
        "scores.all * column(penalty)",
        "scores.all / column(penalty)",
    ),
    (
        ("decoding/beam.py", "decoding/test_decoding.py -k continue"),
        "return best > worst",
        "return ops.broadcast_to(ops.all(best > worst), ops.shape(best))",
    ),
    (BEAM, "chosen // per_row", "chosen % per_row"),
    (BEAM, "(self.places) == 0, 0.0, NEG_INF", "(self.places) == 0, 0.0, 0.0"),
    (BEAM, "index == length - 1", "index == length"),
    (
        ("decoding/beam.py", "decoding/test_decoding.py -k length_penalty"),
        "** power",
        "** -power",
    ),
    (("decoding/best_tokens.py", BEAM[1]), " + places % GROUP_SIZE", ""),
    (
        ("decoding/diverse_beam.py", OPTION("groups")),
        "- self.options.diversity",
        "+ 1.0",
    ),
    (("decoding/constrained_beam.py", OPTION("required")), "== self.banks - 1", ">= 0"),
    (
        ("decoding/token_by_token.py", OPTION("greedy")),
        "ops.where(is_done, 0.0, added)",
        "added",
    ),
    (
        ("decoding/length_limits.py", "decoding/test_decoding.py -k limits"),
        "ops.maximum(limits + length_margin, 1)",
        "limits + length_margin",
    ),
    (
        ("decoding/sampling.py", "decoding/test_decoding.py -k samples"),
        "/ column(temperature)",
        "* column(temperature)",
    ),
    (
        ("decoding/sampling.py", OPTION("top_p")),
        "axis=-1) - ops.exp(best)",
        "axis=-1)",
    ),
    (
        ("decoding/scheduled_sampling.py", f"{TRAINING} -k scheduled"),
        "positions == index + 1",
        "positions == index",
    ),
    (("decoding/beam.py", OPTION("copies")), "places > place)", "places < 0)"),
    # === Evidence ===
    (CONTEXT, "of_phrase > 0, of_phrase, ops", "of_phrase < 0, of_phrase, ops"),
    (EVIDENCE, 'evidence["boxes"] <= most', 'evidence["several"] <= most'),
    (EVIDENCE, "boxes <= most)", "counts <= most)"),
    (
        ("apps/objects/evidence_grammar.py", ADMISSIBLE),
        "index + 1 + self.to_end < tokens.shape[1]",
        "index < tokens.shape[1]",
    ),
    (
        ("apps/objects/evidence.py", ADMISSIBLE),
        "index, state), scores, NEG_INF)",
        "index, state), scores, scores - 1e6)",
    ),
    (
        ("settings/decoding.py", ADMISSIBLE),
        "math.ceil(max(n, beam_size) / groups)",
        "max(n, beam_size) // groups",
    ),
    # === Details ===
    (
        ("apps/objects/actions.py", "objects/test_actions.py -k each_of_those"),
        "least = min(",
        "least = max(",
    ),
    (
        ("apps/objects/thing_colours.py", "predict/test_details.py -k one_colour"),
        ">= MORE *",
        ">= 0 *",
    ),
    (
        ("apps/objects/second_opinion.py", "objects/test_second_opinion.py -k lower"),
        "(0.0, 0.5, 1.0, 1.0)",
        "(0.0, 0.0, 1.0, 0.5)",
    ),
    # === Rewards ===
    (CIDER, 'ops.minimum(ops.expand_dims(ours["weight"], -1), shared)', "shared"),
    (CIDER, "(2 * SIGMA**2)", "SIGMA**2"),
    (
        ("rewards/document_frequencies.py", CIDER[1]),
        "&= keys[:, 1:] != keys[:, :-1]",
        "&= True",
    ),
    (
        ("rewards/sentence_bleu.py", "rewards/test_sentence_bleu.py"),
        "1.0 - ratio",
        "ratio - 1.0",
    ),
    (
        ("apps/objects/object_answers.py", "objects/test_object_answers.py"),
        "missed / (1 + missed)",
        "missed",
    ),
    (
        ("apps/objects/object_truth.py", "rewards/test_object_truth.py -k definition"),
        "2.0 * true - stated",
        "true - stated",
    ),
    # === Advantages, averages and losses ===
    (SCST, "tokens[:, : ops.max(", "tokens[:, : ops.min("),
    (SCST, "(rewards.shape[1] - 1)", "rewards.shape[1]"),
    (SCST, "return -part_of_mean(terms", "return part_of_mean(terms"),
    (MEANS, "ops.where(weights != 0, values * weights, 0.0)", "values"),
    (MEANS, "ops.sum(weights)", "ops.cast(ops.size(weights), 'float32')"),
    (SCST, "constant_values=BOS", "constant_values=PAD"),
    (
        ("training/accumulation.py", "training/test_accumulation.py -k mean"),
        "count / total",
        "1.0 / len(batches)",
    ),
    (
        ("training/averaged_validation.py", f"{TRAINING} -k validated"),
        "epoch - self.count + 1",
        "epoch - self.count",
    ),
    (
        ("training/early_stopping.py", f"{TRAINING} -k stalls"),
        "len(scores) - 1 - best",
        "len(scores) - best",
    ),
    (
        ("training/schedules.py", f"{TRAINING} -k schedule"),
        "(epoch - self.decay_after)",
        "(epoch - self.decay_after - 1)",
    ),
    (
        ("losses/sequence_cross_entropy.py", f"{TRAINING} -k smoothed"),
        "(vocabulary_size - 3)",
        "(vocabulary_size - 2)",
    ),
    # === Files of strangers ===
    (
        ("formats/preset_files.py", "models/test_hub_presets.py -k outside"),
        "ASSET.fullmatch(path)",
        "ASSET.match(path)",
    ),
    # === What counts as padding ===
    (
        ("text/teacher_forcing.py", "batches/test_pipeline.py -k captions_and_regions"),
        "targets, targets != PAD",
        "targets, targets == targets",
    ),
    (
        ("inputs/regions.py", "inputs/test_inputs.py -k area"),
        "flat = ops.any(boxes[..., :2]",
        "flat = ops.all(boxes[..., :2]",
    ),
]


class MutatedLoader(importlib.machinery.SourceFileLoader):
    """Loads modules from their sources, one of them mutated."""

    mutation = None

    def get_code(self, fullname):
        path, text, replacement = self.mutation
        if pathlib.Path(self.path) != path:
            return super().get_code(fullname)
        source = path.read_text().replace(text, replacement)
        return compile(source, str(path), "exec")


def mutate(path, text, replacement):
    """Makes this process import a module with a mutation."""
    MutatedLoader.mutation = path, text, replacement

    def find_in_package(folder):
        if not pathlib.Path(folder).is_relative_to(PACKAGE):
            raise ImportError(folder)
        loader = MutatedLoader, importlib.machinery.SOURCE_SUFFIXES
        return importlib.machinery.FileFinder(folder, loader)

    sys.path_hooks.insert(0, find_in_package)
    sys.path_importer_cache.clear()


class FirstFailure:
    """A plugin of pytest that keeps the name of the first test that failed."""

    name = ""

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.name:
            self.name = report.nodeid.rpartition("::")[2]


def run(tests, limit, mutation=None):
    """Runs tests in a child; returns the first that failed, or "" if they passed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        signal.alarm(limit)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        if mutation:
            mutate(*mutation)
        import pytest

        file, _, rest = tests.partition(" ")
        arguments = [str(TESTS / file), *rest.split(), "-x", "-p", "no:cacheprovider"]
        failure = FirstFailure()
        code = pytest.main(arguments, [failure])
        os.write(writing, failure.name.encode())
        os._exit(code)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):  # processes that the tests started
        os.killpg(child, signal.SIGKILL)
    with os.fdopen(reading) as file:
        failed = file.read()
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    code = os.WEXITSTATUS(status)
    if code > 1:
        return f"status {code} of pytest"  # an error while modules are imported
    return failed if code else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="beginning of the mutated files")
    parser.add_argument("--limit", type=int, default=300, help="seconds for each run")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if m[0][0].startswith(arguments.only)]
    for (file, _), text, _ in chosen:
        if (PACKAGE / file).read_text().count(text) != 1:
            sys.exit(f"{file} does not hold {text!r} once: mend the table")
    import tensorflow  # noqa: F401 (the children inherit it)

    begun, survivors, passed = time.monotonic(), [], set()
    for (file, tests), text, replacement in chosen:
        if tests not in passed:
            if failed := run(tests, arguments.limit):
                sys.exit(f"{tests} fails without a mutation: {failed}")
            passed.add(tests)
        start = time.monotonic()
        failed = run(tests, arguments.limit, (PACKAGE / file, text, replacement))
        outcome = f"killed by {failed}" if failed else f"SURVIVED {tests}"
        print(
            f"{file}: {text!r} -> {replacement!r}, {outcome}, "
            f"{time.monotonic() - start:.0f} s",
            flush=True,
        )
        if not failed:
            survivors.append(file)
    minutes = (time.monotonic() - begun) / 60
    print(f"{len(survivors)} of {len(chosen)} survived; {minutes:.0f} minutes")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
