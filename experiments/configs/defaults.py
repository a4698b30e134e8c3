"""What the configurations of all datasets begin with."""

SELF_CRITICAL = {
    "epochs": 0,
    "batch_size": 16,
    "learning_rate": 1e-4,
    "baseline": "greedy",
    "samples": 5,
    "temperature": 1.0,
    "cross_entropy": 0.0,
    "halved_after": 0,
}
DECODING = {"beam_size": 3, "max_length": 20, "length_penalty": 0.0}
