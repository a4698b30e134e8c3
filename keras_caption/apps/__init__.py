"""What is built around the core, and what it gives to the core by name.

No part of the core imports an app. A registry of the core, or the namespace of a part,
imports what an app gives it here at its first use.
"""

from keras_caption.registration import give


def register() -> None:
    """Registers what the apps give to the core; it imports none of them."""
    give("hooks", {"evidence": "keras_caption.objects.evidence:ObjectEvidence"})
    of_objects = "keras_caption.objects.named_objects"
    colours = "keras_caption.objects.named_colours"
    give(
        "keras_caption.evaluation",
        {
            "colour_agreement": f"{colours}:colour_agreement",
            "hallucinations": f"{of_objects}:hallucinations",
            "named_colours": f"{colours}:named_colours",
            "named_objects": f"{of_objects}:named_objects",
            "object_agreement": f"{of_objects}:object_agreement",
            "object_scores": f"{of_objects}:object_scores",
        },
    )
    give(
        "keras_caption.rewards",
        {
            "ObjectTruth": "keras_caption.rewards.object_truth:ObjectTruth",
            "PlaceTruth": "keras_caption.rewards.place_truth:PlaceTruth",
        },
    )
    loading = "keras_caption.synthetic.loading"
    give(
        "datasets",
        {
            "scenes": f"{loading}:load_scenes",
            "moving_scenes": f"{loading}:load_moving_scenes",
        },
    )
    sentences = "keras_caption.synthetic.scene_sentences:SceneSentences"
    give("parallel text", {"scene_sentences": sentences})
    asked = "keras_caption.synthetic.scenes.loading:load_scene_questions"
    give("questions", {"scene_questions": asked})
    curriculum = "keras_caption.synthetic.scenes.questions:CURRICULUM"
    give("curricula", {"scene_questions": curriculum})
    statements = "keras_caption.synthetic.statements"
    give(
        "statements",
        {
            "events": f"{statements}:OF_MOVING_SCENES",
            "objects": f"{statements}:OF_SCENES",
        },
    )
    reports = "keras_caption.tasks.reports"
    give(
        "reports",
        {
            "captioning": f"{reports}.captioning",
            "captioning_examples": f"{reports}.captioning_examples",
            "question_answering": f"{reports}.question_answering",
            "answering_examples": f"{reports}.answering_examples",
            "translation": f"{reports}.translation",
            "translation_examples": f"{reports}.translation_examples",
        },
    )
