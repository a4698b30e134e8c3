"""What is built around the core, and what it gives to the core by name.

No part of the core imports an app. A registry of the core, or the namespace of a part,
imports what an app gives it here at its first use.
"""

from keras_caption.base.registration import give

DETECTING = (
    *("CATEGORIES", "COLOURS", "ColouredObjects", "EngineDetector", "HubDetector"),
    *("LiteClassifier", "LiteDetector", "NanoDet", "ObjectDetector"),
    *("PhotoClassifier", "SecondOpinion", "Yolox", "colours_of", "load_detector"),
)


def register() -> None:
    """Registers what the apps give to the core; it imports none of them."""
    give("saved", {"objects": "keras_caption.apps.objects"})
    evidence = "keras_caption.apps.objects.evidence:ObjectEvidence"
    give("hooks", {"evidence": evidence})
    # Names that were public there before `keras_caption.objects` had them.
    give("keras_caption.decoding", {"ObjectEvidence": evidence})
    detecting = {name: f"keras_caption.apps.objects:{name}" for name in DETECTING}
    give("keras_caption.features", detecting)
    of_objects = "keras_caption.apps.objects.named_objects"
    colours = "keras_caption.apps.objects.named_colours"
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
            "ObjectTruth": "keras_caption.apps.objects:ObjectTruth",
            "PlaceTruth": "keras_caption.apps.objects:PlaceTruth",
        },
    )
    loading = "keras_caption.apps.scenes.loading"
    give(
        "datasets",
        {
            "scenes": f"{loading}:load_scenes",
            "moving_scenes": f"{loading}:load_moving_scenes",
        },
    )
    sentences = "keras_caption.apps.scenes.scene_sentences:SceneSentences"
    give("parallel text", {"scene_sentences": sentences})
    asked = "keras_caption.apps.scenes.scenes.loading:load_scene_questions"
    give("questions", {"scene_questions": asked})
    curriculum = "keras_caption.apps.scenes.scenes.questions:CURRICULUM"
    give("curricula", {"scene_questions": curriculum})
    statements = "keras_caption.apps.scenes.statements"
    give(
        "statements",
        {
            "events": f"{statements}:OF_MOVING_SCENES",
            "objects": f"{statements}:OF_SCENES",
        },
    )
    reports = "keras_caption.apps.report.tasks"
    give(
        "reports",
        {
            name: f"{reports}.{name}"
            for task in ("captioning", "question_answering", "translation")
            for name in (task, f"{task}_examples")
        },
    )
