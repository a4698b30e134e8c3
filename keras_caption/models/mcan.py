import os
from typing import Unpack

import keras
import numpy as np
from jaxtyping import Float32
from keras import ops

from keras_caption.base.arguments import Count, Layers, ShareBelowOne, Tensor
from keras_caption.base.errors import InputError
from keras_caption.formats.glove import read_glove
from keras_caption.inputs import QuestionText, Regions
from keras_caption.layers import (
    AttentionPooling,
    BoxEncoding,
    CoAttentionBlock,
    MatrixDense,
    UnbiasedLayerNormalization,
    WordEmbedding,
)
from keras_caption.layers.lstm import make_lstm
from keras_caption.models.attention import (
    AttentionOptions,
    EncoderMechanisms,
    make_attention,
)
from keras_caption.models.classifier import Classifier, ClassifierOptions
from keras_caption.models.constructors import for_base
from keras_caption.models.initializers import LINEAR
from keras_caption.models.sizes import check_heads, resolve_size
from keras_caption.text import Tokenizer, Vocabulary


class MCANOptions(EncoderMechanisms, ClassifierOptions, total=False):
    """Keywords of `MCAN` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class MCAN(Classifier):
    """Deep modular co-attention network: answers questions about image regions.

    An LSTM reads the embedded words of the question, and blocks of self-attention
    refine them. Further blocks refine the regions by self-attention and by attention to
    the refined words. Words and regions are each pooled by attention; the two vectors
    are added, normalized and classified. The probabilities are sigmoids, as several
    answers may be right in VQA v2, or a softmax if one answer is right.

    The mechanisms of the other papers apply to the self-attention of regions. Words
    have no boxes, so the self-attention of words and the attention of regions to words
    stay plain. (The NG-SAN paper replaces "all the SA modules" by GSA, and does not say
    which boxes words have.)

    Args:
        answers: List of str, all different.
        question: `keras_caption.text.QuestionTokenizer`, or `None`.
        question_size: int, number of tokens, needed without a `question`.
        region_dim: int, size of a region's feature vector.
        num_layers: int, number of blocks for the question, and again for the regions.
        model_dim: int, size of the hidden states, and of the LSTM.
        num_heads: int, number of attention heads; divides `model_dim`.
        feedforward_dim: int, inner size of the feed-forward layers.
        embedding_dim: int, size of a word's embedding. `load_word_vectors` loads
            pretrained embeddings.
        pooling_dim: int, inner size of the layers that pool words and regions.
        fusion_dim: int, size of the pooled question and of the pooled image.
        dropout: float, dropout rate of branches, feed-forward layers, attention
            weights and pooling.
        multi_label: bool, whether several answers may be right, see `Classifier`.
        **options: The options of `keras_caption.models.AttentionOptions`, without those
            of areas and lengths of the output, and the keywords of `Classifier`.

    Call arguments:
        inputs: dict of `regions`, `boxes`, which may be omitted without `geometry`,
            optionally a mask, see `keras_caption.inputs.Regions`; and `question`, see
            `keras_caption.inputs.QuestionText`.

    Raises:
        InputError: If an option has a wrong value.

    Example:

    ```python
    question = keras_caption.text.QuestionTokenizer.build(questions)
    model = keras_caption.models.create("mcan", answers=answers, question=question)
    model.load_word_vectors("glove.6B.300d.txt")
    model.fit(inputs, scores)
    model.answer({"regions": regions, "boxes": boxes}, ["What is the man holding?"])
    ```

    Reference:
        Yu et al., "Deep Modular Co-Attention Networks for Visual Question
        Answering", CVPR 2019, and its released code; Guo et al., CVPR 2020,
        section 6.3, for GSA in it.
    """

    def __init__(
        self,
        answers: list[str],
        question: Tokenizer | None = None,
        question_size: Count | None = None,
        region_dim: Count = 2048,
        num_layers: Layers = 6,
        model_dim: Count = 512,
        num_heads: Count = 8,
        feedforward_dim: Count = 2048,
        embedding_dim: Count = 300,
        pooling_dim: Count = 512,
        fusion_dim: Count = 1024,
        dropout: ShareBelowOne = 0.1,
        multi_label: bool = True,
        **options: Unpack[MCANOptions],
    ):
        question_size = self.question_size = resolve_size(
            "question", question, question_size
        )
        dtype = options.get("dtype")
        check_heads(model_dim, num_heads)
        region_options = AttentionOptions.of(options, dropout=dropout)
        plain = AttentionOptions(dropout=dropout)

        def attention(mechanisms):
            return make_attention(
                num_heads,
                model_dim // num_heads,
                mechanisms,
                kernel_initializer=LINEAR,
                output_initializer=LINEAR,
                dtype=dtype,
            )

        def pool(x, mask, name):
            layer = AttentionPooling(
                pooling_dim, fusion_dim, dropout, dtype=dtype, name=f"pooled_{name}"
            )
            return layer(x, mask=mask)

        inputs = {**Regions.symbolic(region_dim), **QuestionText.symbolic()}
        region_mask = Regions(inputs).memory_mask(inputs)
        word_mask = QuestionText(inputs).memory_mask(inputs)

        # === Question ===
        words = WordEmbedding(
            question_size, embedding_dim, scaled=False, dtype=dtype, name="embedding"
        )(inputs["question"])
        # No mask: padding is at the end, and an LSTM reads it after all valid words.
        words = make_lstm(model_dim, dtype=dtype, name="lstm")(words)
        for i in range(num_layers):
            words = CoAttentionBlock(
                attention(plain),
                feedforward_dim,
                dropout=dropout,
                kernel_initializer=LINEAR,
                dtype=dtype,
                name=f"question_{i}",
            )(words, mask=word_mask)

        # === Regions ===
        x = MatrixDense(
            model_dim,
            kernel_initializer=LINEAR,
            dtype=dtype,
            name="region_embedding",
        )(inputs["regions"])
        if region_options.absolute_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])
        for i in range(num_layers):
            x, *_ = CoAttentionBlock(
                attention(region_options.in_block(i)),
                feedforward_dim,
                attention(plain),
                dropout,
                LINEAR,
                dtype=dtype,
                name=f"regions_{i}",
            )(
                x,
                words,
                mask=region_mask,
                memory_mask=word_mask,
                boxes=inputs["boxes"],
                return_attention_scores=True,
            )

        # === Answer ===
        fused = keras.layers.Add(dtype=dtype, name="fused")(
            [pool(words, word_mask, "question"), pool(x, region_mask, "regions")]
        )
        fused = UnbiasedLayerNormalization(dtype=dtype, name="fused_norm")(fused)
        logits = keras.layers.Dense(len(answers), dtype=dtype, name="logits")(fused)
        encoder = keras.Model(inputs, logits, name="encoder")
        super().__init__(encoder, answers, question, multi_label, **for_base(options))
        self.num_layers = num_layers
        self.embedding_dim = embedding_dim
        self.ignored_inputs = () if region_options.geometry else ("boxes",)

    def attention(self, inputs: dict[str, Tensor]) -> Float32[Tensor, "batch N T"]:
        """Attention weights of regions over the words of the question.

        Args:
            inputs: dict of tensors, as `read` returns it.

        Returns:
            float32 `(batch, N, T)`, weights of the last block, averaged over its heads.
            The weights of a valid region sum to 1 over the words.
        """
        if "attention" not in self._compiled_functions:
            last = self.encoder.get_layer(f"regions_{self.num_layers - 1}")
            self._compiled_functions["attention"] = keras.Model(
                self.encoder.input, last.output[-1]
            )
        scores = self._compiled_functions["attention"](inputs, training=False)
        return ops.mean(ops.cast(scores, "float32"), axis=1)

    def load_word_vectors(self, path: str | os.PathLike) -> int:
        """Sets the embeddings of words to pretrained vectors, such as GloVe.

        Training continues from these vectors. Words that the file lacks, and the token
        of unknown words, start at zero, as in MCAN's released code.

        Args:
            path: Path of a text file of GloVe, plain or as `.gz`, see
                `keras_caption.formats.glove.read_glove`.

        Returns:
            int, the number of words of the model that the file has.

        Raises:
            InputError: If the model has no tokenizer of words, the file is damaged, the
                size of its vectors is not `embedding_dim`, or it has none of the words.
        """
        if not isinstance(self.question, Vocabulary):
            raise InputError(
                f"The model '{self.name}' has no tokenizer of the words of questions."
            )
        vectors = read_glove(path, set(self.question.words), self.embedding_dim)
        zeros = np.zeros(self.embedding_dim, "float32")
        rows = [vectors.get(word, zeros) for word in self.question.words]
        self.encoder.get_layer("embedding").embeddings.assign(np.stack(rows))
        return len(vectors)
