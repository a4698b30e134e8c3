"""Every number of the papers' table of question answering, as the paper prints them."""

from keras_caption.papers.published import CROSS_ENTROPY, Published, Table

ANSWERS = {
    "ngsan_9": Table(
        "NG-SAN, Table 9",
        tuple(
            Published(
                f"{label}, {split}",
                {"accuracy": score},
                model,
                objective=CROSS_ENTROPY,
            )
            for label, model, *scores in (
                ("MLIN", None, 70.18, 70.28),
                ("DFAF", None, 70.22, 70.34),
                ("MCAN", None, 70.63, 70.90),
                ("MCAN (Ours)", "mcan", 70.54, 70.83),
                ("+ GSA", "mcan_gsa", 70.76, 71.28),
            )
            for split, score in zip(("test-dev", "test-std"), scores, strict=True)
        ),
        "Ours, the same in both rows, are of the test split of the dataset. The paper "
        'replaces "all the SA modules" and does not say which boxes words have, nor '
        "which geometry GSA has: GSA over regions alone, by the query, is ours.",
        "VQA v2's server",
    ),
}
