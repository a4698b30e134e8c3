import ctypes

# Parameters of mallopt(3).
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX, ARENA_MAX = -1, -2, -4, -8


def keep_freed_memory() -> None:
    """Makes glibc keep large blocks that are freed, for the next ones.

    By default it gives them back to the kernel at once. A training step on a CPU makes
    its largest tensors anew each time, the logits above all, and took a third of its
    CPU time to get their pages again. Other C libraries are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(ARENA_MAX, 1)  # further arenas would map large blocks all the same
    mallopt(MMAP_MAX, 0)
    mallopt(TRIM_THRESHOLD, 2**31 - 1)
    mallopt(TOP_PAD, 2**28)
