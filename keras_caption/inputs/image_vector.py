from keras_caption.inputs.input_kind import InputKind


class ImageVector(InputKind):
    """Features of an image as a whole, `image_vector`, float `(batch, dim)`."""

    keys = ("image_vector",)
    noun = "image"
