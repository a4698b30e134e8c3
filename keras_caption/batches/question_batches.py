"""Batches for models of questions, made from questions and examples of images."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_caption.base.arguments import Count, CountOrZero, check
from keras_caption.base.errors import InputError, hint
from keras_caption.batches.answers import soft_scores
from keras_caption.batches.few_shapes import padded_to_few_shapes
from keras_caption.batches.pipeline import (
    CACHED_SHUFFLE_BUFFER,
    SHUFFLE_BUFFER,
    endless,
    in_float32,
)
from keras_caption.formats.question import Question
from keras_caption.inputs import of_example
from keras_caption.text import PAD
from keras_caption.text.questions import MAX_QUESTION_TOKENS


class EncodedQuestions:
    """Encoded questions, to be joined with the features of their images.

    Args:
        questions: Sequence of `keras_caption.formats.question.Question`.
        tokens: int32 `(questions, T)`, token ids, then PAD, see
            `keras_caption.models.Classifier.question_tokens`.
        answers: List of str, the answers of the model. Other answers are ignored: a
            question whose answers are all unknown has targets of zeros.
        images: tf.data dataset of examples, see
            `keras_caption.datasets.region_features`, which include all images that the
            questions are about; others are skipped.
        inputs: Names of the model's inputs of an image, such as its `input_specs`.
        few_shapes: bool, whether to pad training batches to few shapes, as XLA compiles
            a step for each: questions to the greatest length, and numbers of regions to
            sizes that `keras_caption.compilation.round_up` returns.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        tokens: np.ndarray,
        answers: Sequence[str],
        images: tf.data.Dataset,
        inputs: Any = None,
        few_shapes: bool = False,
    ):
        self._inputs = inputs
        self._few_shapes = few_shapes
        self._images = images
        self._num_answers = len(answers)
        # Sorted by image, so that bisection finds the questions of an image.
        image_ids = np.array([q.image_id for q in questions], "int64")
        self._order = np.argsort(image_ids, kind="stable")
        self._image_ids = tf.constant(image_ids[self._order])
        self._tokens = tf.constant(tokens[self._order], tf.int32)
        self._kinds = [questions[i].kind for i in self._order]
        id_of = {answer: i for i, answer in enumerate(answers)}
        known = [
            [(id_of[a], s) for a, s in soft_scores(questions[i]).items() if a in id_of]
            if questions[i].answers
            else []
            for i in self._order
        ]
        # (questions, answers, 2): id and score, padded with id -1.
        most = max(map(len, known), default=0)
        rows = [row + [(-1, 0.0)] * (most - len(row)) for row in known]
        padded = np.array(rows, "float32").reshape(len(known), most, 2)
        self._answer_ids = tf.constant(padded[..., 0], tf.int32)
        self._scores = tf.constant(padded[..., 1])

    def __len__(self) -> int:
        return len(self._order)

    def train_batches(
        self,
        batch_size: int,
        seed: int = 0,
        first_epoch: int = 0,
        cache: bool = True,
        curriculum: Mapping[str, int] | None = None,
    ) -> tf.data.Dataset:
        """Makes endless training batches, in another order each epoch.

        The batches of an epoch depend on `seed` and the epoch's number alone, so that a
        run resumed at epoch k sees the same batches as an uninterrupted one. Each
        question is asked once in every epoch; an incomplete last batch is dropped.
        While a curriculum withholds questions, the others are asked again, so that all
        epochs have the same number of batches. Without `cache`, no more than a window
        of images and a window of questions are in memory.

        Args:
            batch_size: int, number of questions.
            seed: int.
            first_epoch: int, number of the first epoch.
            cache: bool, whether to keep the features of all images in memory. If not,
                each epoch reads them anew.
            curriculum: dict from kind of question to the number of the first epoch that
                asks such questions. Other kinds are asked from epoch 0 on.

        Returns:
            tf.data dataset of inputs and targets. Inputs are a dict of `question`,
            int32 `(B, T)`, and the inputs of the image, see `keras_caption.inputs`;
            targets are soft scores, float32 `(B, answers)`.

        Raises:
            InputError: If the curriculum names a kind that no question has, or leaves
                none to ask in epoch 0.
        """
        check(Count, batch_size=batch_size)
        check(CountOrZero, seed=seed, first_epoch=first_epoch)
        if curriculum:
            asked_from = self._asked_from(curriculum)
            size = len(self) // batch_size * batch_size
        images, window = (
            self._images.map(self._prepare, tf.data.AUTOTUNE),
            SHUFFLE_BUFFER,
        )
        if cache:
            images, window = images.cache(), CACHED_SHUFFLE_BUFFER

        def with_targets(inputs, row):
            return inputs, self._targets(row)

        def batches_of_epoch(epoch):
            # The global seed of this graph only, so that no seed set elsewhere changes
            # the order.
            tf.random.set_seed(seed + 1)
            order = images.shuffle(window, seed=epoch).flat_map(self._of_image)
            if curriculum:
                order = order.filter(lambda _, row: asked_from[row] <= epoch)
                order = order.repeat().take(size)
            batches = self._batches(order.shuffle(window, seed=epoch), batch_size, True)
            return batches.map(with_targets, tf.data.AUTOTUNE)

        return endless(batches_of_epoch, first_epoch)

    def batches(self, batch_size: int) -> tf.data.Dataset:
        """Makes batches to answer, each question once, in the order of the images.

        Args:
            batch_size: int, number of questions; the last batch may have fewer.

        Returns:
            tf.data dataset of inputs, see `train_batches`, and the indices of the
            questions in the original sequence, int64 `(B,)`.
        """
        images = self._images.map(self._prepare, tf.data.AUTOTUNE)
        batches = self._batches(images.flat_map(self._of_image), batch_size, False)
        order = tf.constant(self._order)
        return batches.map(lambda inputs, row: (inputs, tf.gather(order, row)))

    def _asked_from(self, curriculum):
        """Returns the first epoch of each question, int64, in the order of images."""
        kinds = sorted(set(self._kinds))
        for kind, first in curriculum.items():
            if kind not in kinds:
                raise InputError(
                    f"The curriculum names {kind!r}, which is no kind of the questions "
                    f"to train on. {hint(kind, kinds)}"
                )
            check(CountOrZero, **{f"curriculum.{kind}": first})
        first = [curriculum.get(kind, 0) for kind in self._kinds]
        if 0 not in first:
            raise InputError("The curriculum leaves no question to ask in epoch 0.")
        return tf.constant(first, tf.int64)

    def _prepare(self, example):
        """Returns the inputs of an image, and the range of its questions."""
        image_id = example["image_id"][None]
        first, end = (
            tf.searchsorted(self._image_ids, image_id, side, tf.int64)[0]
            for side in ("left", "right")
        )
        return of_example(example, self._inputs), first, end

    @staticmethod
    def _of_image(image, first, end):
        """Pairs an image with each of its questions, without copies of features."""
        images = tf.data.Dataset.from_tensors(image).repeat()
        return tf.data.Dataset.zip(images, tf.data.Dataset.range(first, end))

    def _batches(self, asked, batch_size, drop_remainder):
        def complete(image, row):
            tokens = tf.gather(self._tokens, row)
            length = tf.reduce_sum(tf.cast(tf.reduce_any(tokens != PAD, 0), tf.int32))
            batch = {
                **in_float32(image),
                "question": tokens[:, : tf.maximum(length, 1)],
            }
            if self._few_shapes and drop_remainder:
                shape = batch_size, MAX_QUESTION_TOKENS
                batch = padded_to_few_shapes(batch, question=shape)
            return batch, row

        batches = asked.padded_batch(batch_size, drop_remainder=drop_remainder)
        return batches.map(complete, tf.data.AUTOTUNE)

    def _targets(self, row):
        ids, scores = tf.gather(self._answer_ids, row), tf.gather(self._scores, row)
        places = tf.where(ids >= 0)
        indices = tf.stack([places[:, 0], tf.cast(ids[ids >= 0], tf.int64)], axis=1)
        shape = tf.shape(row, tf.int64)[0], self._num_answers
        return tf.scatter_nd(indices, scores[ids >= 0], shape)
