"""What the files are that every run writes, by name."""

MODEL_FILES = {
    "best.keras": "the model, for keras.models.load_model",
    "1": "the model as a SavedModel, for TensorFlow Serving",
    "last.keras": "the last epoch's model and optimizer, for --resume",
}
DESCRIPTIONS = {
    "report.html": "a report of the run, for a browser",
    "README.md": "the model card, for people and for hubs",
    "config.json": "the configuration of the run",
}
