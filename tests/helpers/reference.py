"""The papers' equations in float64, written as loops."""

import numpy as np


def softmax(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum()


def instance_norm(x, mask, epsilon):
    """x (N, C), mask (N,): valid rows, each channel with mean 0 and variance 1."""
    valid = x[mask]
    out = np.zeros_like(x)
    out[mask] = (valid - valid.mean(0)) / np.sqrt(valid.var(0) + epsilon)
    return out


def relative_geometry(boxes, signed=False):
    """boxes (N, 4) -> (N, N, 4), Eq. 8; signed, (N, N, 24)."""
    n = len(boxes)
    out = np.zeros((n, n, 24 if signed else 4))
    for i, (ax1, ay1, ax2, ay2) in enumerate(boxes):
        for j, (bx1, by1, bx2, by2) in enumerate(boxes):
            dx = abs((ax1 + ax2) / 2 - (bx1 + bx2) / 2)
            dy = abs((ay1 + ay2) / 2 - (by1 + by2) / 2)
            out[i, j, :4] = np.log(
                [
                    max(dx / (ax2 - ax1), 1e-3),
                    max(dy / (ay2 - ay1), 1e-3),
                    (ax2 - ax1) / (bx2 - bx1),
                    (ay2 - ay1) / (by2 - by1),
                ]
            )
            if signed:
                offset = (bx1 + bx2 - ax1 - ax2) / 2, (by1 + by2 - ay1 - ay2) / 2
                length = np.hypot(*offset) / (np.hypot(*offset) + 0.02)
                angle = np.arctan2(offset[1], offset[0])
                out[i, j, 4:6] = np.cos(angle) * length, np.sin(angle) * length
                out[i, j, 6] = np.cos(2 * angle) * length**2
                out[i, j, 7] = np.sin(2 * angle) * length**2
                angles = np.outer(offset, np.pi * 2.0 ** np.arange(-1, 3)).ravel()
                out[i, j, 8:] = [*np.sin(angles), *np.cos(angles)]
    return out


def dense(layer, x):
    weights = [np.asarray(w.value, "float64") for w in layer.weights]
    return x @ weights[0] + (weights[1] if len(weights) > 1 else 0.0)


def geometry_bias(layer, x, boxes):
    """x (N, D), boxes (N, 4) -> (H, N, N), the sum of Eq. 11 to 13 over `kind`."""
    heads, d = layer.num_heads, layer.geometry_dim
    n = len(x)
    f = relative_geometry(boxes, layer.signed)
    g = np.maximum(dense(layer.geometry_dense, f), 0)
    out = np.zeros((heads, n, n))
    for h in range(heads):
        for i in range(n):
            for j in range(n):
                if "content_independent" in layer.kind:
                    w = dense(layer.content_independent_dense, g[i, j])
                    out[h, i, j] += max(w[h], 0)
                if "query" in layer.kind:
                    q = dense(layer.query_dense, x[i]).reshape(heads, d)
                    out[h, i, j] += q[h] @ g[i, j]
                if "key" in layer.kind:
                    k = dense(layer.key_dense, x[j]).reshape(heads, d)
                    out[h, i, j] += k[h] @ g[i, j]
    return out


def attention(layer, x, memory, mask, query_mask=None, boxes=None):
    """One example: x (T, D), memory (M, D), mask (T, M) -> (T, D)."""
    q, k, v = (
        dense(dense_layer, source)
        for dense_layer, source in [
            (layer.query_dense, x),
            (layer.key_dense, memory),
            (layer.value_dense, memory),
        ]
    )
    if layer.query_norm is not None:
        q = instance_norm(q, query_mask, layer.query_norm.epsilon)
    if layer.key_norm is not None:
        k = instance_norm(k, mask.any(0), layer.key_norm.epsilon)
    bias = geometry_bias(layer.bias, x, boxes) if layer.bias is not None else None
    d = layer.key_dim
    out = np.zeros((len(x), layer.num_heads * d))
    for h in range(layer.num_heads):
        head = slice(h * d, (h + 1) * d)
        for t in range(len(x)):
            scores = k[:, head] @ q[t, head] / np.sqrt(d)
            if bias is not None:
                scores = scores + bias[h, t]
            allowed = mask[t]
            weights = softmax(scores[allowed])
            out[t, head] = weights @ v[allowed][:, head]
    return dense(layer.output_dense, out)
