import numpy as np
from keras import ops

from keras_caption.errors import InputError
from keras_caption.models.generator import Generator
from keras_caption.models.loading import load


class Ensemble(Generator):
    """Several captioners that speak as one.

    At every word the probabilities of all members are averaged; searches run over
    the averages as over one model's. Members may be of different kinds and sizes,
    some of regions and some of grids; they share a vocabulary.

    It generates as a captioner does, and `keras_caption.serving.export` takes it.

    Args:
        members: Captioners, or what `load` takes.

    Raises:
        InputError: If there are none, a member cannot be loaded, or has no vocabulary
            or another one than the first, or features of another size or way to find
            them.

    Example:

    ```python
    ensemble = keras_caption.models.Ensemble(["a.keras", "b.keras"])
    captions = ensemble.generate({"regions": regions, "boxes": boxes})
    ```

    Reference:
        Huang et al., ICCV 2019, Table 1, has ensembles of four models that differ in
        their first weights. That probabilities are averaged is ours: it does not say.
    """

    def __init__(self, members):
        self.members = [
            member if isinstance(member, Generator) else load(member)
            for member in members
        ]
        if not self.members:
            raise InputError("An ensemble needs members.")
        self.name = " + ".join(member.name for member in self.members)
        first = self.members[0]
        self.vocabulary = first.vocabulary
        self.extractor = first.extractor
        self.image_specs = {}
        for number, member in enumerate(self.members, start=1):
            who = f"Member {number} of the ensemble, {member.name!r},"
            if member.vocabulary is None:
                raise InputError(f"{who} has no vocabulary.")
            if member.vocabulary != self.vocabulary:
                raise InputError(f"{who} has another vocabulary than the first.")
            if not are_same(member.extractor, self.extractor):
                raise InputError(
                    f"{who} finds its features in photos in another way than the first."
                )
            for name, spec in member.image_specs.items():
                expected = self.image_specs.setdefault(name, spec)
                if spec.shape != expected.shape:
                    raise InputError(
                        f"{who} reads {name} of shape {spec.shape}; one before it "
                        f"reads {expected.shape}."
                    )

    @property
    def variables(self):
        return [v for member in self.members for v in member.variables]

    @property
    def reads_boxes(self):
        """Whether predictions of a member depend on the boxes of regions."""
        return any(member.reads_boxes for member in self.members)

    def encode(self, inputs):
        """What the members read of the images, a list."""
        return [member.encode(inputs) for member in self.members]

    def start(self, memory, length=20):
        """The members' states before the first word."""
        states = [
            member.start(of_member, length=length)
            for member, of_member in zip(self.members, memory, strict=True)
        ]
        return {part: [s[part] for s in states] for part in ("memory", "cache")}

    def step(self, tokens, state, index):
        """One more word: logarithms of the average probabilities, and the state."""
        logits, caches = [], []
        for member, memory, cache in zip(
            self.members, state["memory"], state["cache"], strict=True
        ):
            own, new = member.step(tokens, {"memory": memory, "cache": cache}, index)
            logits.append(own)
            caches.append(new["cache"])
        return average(logits), {**state, "cache": caches}

    def logits(self, tokens, memory):
        """Logarithms of the average probabilities after each token of captions."""
        return average(
            [
                member.logits(tokens, of_member)
                for member, of_member in zip(self.members, memory, strict=True)
            ]
        )

    def attention(self, tokens, memory):
        """Where the members' decoders look on average: on a grid, if any reads one."""
        kind = "grid" if "grid" in self.image_specs else "regions"
        looks = [
            member.attention(tokens, of_member)
            for member, of_member in zip(self.members, memory, strict=True)
            if kind in member.image_specs
        ]
        return ops.mean(ops.stack(looks), axis=0)


def are_same(extractor, other):
    """Whether two extractors find the same features in a photo."""
    if extractor is None or other is None:
        return extractor is other
    return extractor.get_config() == other.get_config() and all(
        np.array_equal(x, y)
        for x, y in zip(extractor.get_weights(), other.get_weights(), strict=True)
    )


def average(logits):
    """Logarithms of the averages of the probabilities that logits stand for."""
    log_probs = ops.stack([ops.log_softmax(own) for own in logits])
    return ops.logsumexp(log_probs, axis=0) - ops.log(float(len(logits)))
