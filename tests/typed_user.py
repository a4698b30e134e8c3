"""Lines that users write, for type checkers: `make lint`.

A misspelt argument is an error: a checker complains of a `type: ignore` without one.
"""

import numpy as np

import keras_caption as kc

regions = kc.layers.InstanceNormalization(affine=True, name="norm")
attention = kc.layers.MultiHeadAttention(8, 64, query_norm=regions, dtype="float16")
normalized = kc.layers.NormalizedSelfAttention(num_heads=8, key_dim=64, dropout=0.1)
kc.layers.TransformerEncoderBlock(attention, 2048, norm_position="pre", name="block")
kc.layers.InstanceNormalization(afine=True)  # type: ignore[call-arg]
kc.layers.MultiHeadAttention(8, 64, query_nrom="layer")  # type: ignore[call-arg]
kc.layers.AreaAttention(8, 64, droput=0.1)  # type: ignore[call-arg]
kc.layers.TransformerDecoderBlock(attention, attention, 8, nrom="")  # type: ignore

words = kc.text.Vocabulary.build(["a dog"], min_count=1)
model = kc.models.NGSAN(words, region_dim=8, query_norm="instance", norm="layer")
named = kc.models.AoANet(vocabulary_size=20, decoder_heads=1, gate="aoa", name="aoa")
kc.models.NGSAN(words, region_dmi=8)  # type: ignore[call-arg]
kc.models.NGSAN(words, region_dim="8")  # type: ignore[arg-type]
kc.models.NGSAN(words, gat="aoa")  # type: ignore[call-arg]
kc.models.NGSAN(words, norm="lyer")  # type: ignore[arg-type]
kc.models.LSTMTranslator(geometry="query")  # type: ignore[call-arg]
kc.models.UpDown(words, gate="aoa")  # type: ignore[call-arg]
kc.models.Captioner(model.encoder, model.decoder, words, threshold=0.5, name="own")
kc.models.Captioner(model.encoder, model.decoder, word=words)  # type: ignore[call-arg]

images = {"regions": np.zeros((1, 5, 8)), "boxes": np.zeros((1, 5, 4))}
captions = model.generate(images, beam_size=3, forbidden=["dog"])
[[(best, score, weights), *_]] = named.generate(images, 8, n=2, attention=True)
print(captions[0].upper(), best.upper(), score + 1, weights.shape)
for text, log_probability in model.generate(images, n=2)[0]:
    print(text.upper(), log_probability + 1)
[[texts]] = [list(model.generate(images, stream=True))]
print(texts[0].upper(), model.generate(images, attention=True)[0][1].shape)
captions[0].uper()  # type: ignore[attr-defined]
model.generate(images, n=2)[0].upper()  # type: ignore[attr-defined]
model.generate(images, beam_sise=3)  # type: ignore[call-overload]
model.generate(images, beam_size="3")  # type: ignore[call-overload]
model.generate_tokens(images, progres=True)  # type: ignore[call-arg]

translator = kc.models.create("transformer_tiny", source_size=8, target_size=8)
translator.translate(["a dog"], beam_size=4, length_ratio=None)
translator.translate(["a dog"], lenth_ratio=2)  # type: ignore[call-arg]
created = kc.models.create("ngsan", vocabulary=words, region_dim=8)
created.generate(images, temprature=1.0)  # type: ignore[call-overload]
answering = kc.models.create("mcan", answers=["yes", "no"], question_size=20)
answering.answer(images, ["Is there a dog?"], batch_size=8)
answering.answer(images, question=["Is there a dog?"])  # type: ignore[call-arg]

loaded = kc.models.load("model.keras")
loaded.generate(images, max_length=16)
loaded.generate(images, max_lenght=16)  # type: ignore[call-overload]
kc.serving.export(model, "served/1", beam_size=5)
kc.serving.export(model, "served/1", beam_sise=5)  # type: ignore[call-arg]
kc.decoding.Decoding(beam_size=5, temperature=None)
kc.decoding.Decoding(beam_sise=5)  # type: ignore[call-arg]

client = kc.serving.Client("http://localhost:8501")
print(client.answer("ngsan_coco", ["photo.jpg"], n=2, beam_size=5)[0].text)
client.answer("ngsan_coco", ["photo.jpg"], beam_sise=5)  # type: ignore[call-arg]
kc.evaluation.object_scores({}, {}, objcts={})  # type: ignore[call-arg]
kc.decoding.ObjectEvidence(words, tabel=None)  # type: ignore[call-arg]
print(kc.__version__.upper())
print(kc.rewards.CiderE)  # type: ignore[attr-defined]
print(kc.objects.load_detektor)  # type: ignore[attr-defined]
