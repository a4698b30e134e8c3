"""Evaluations of trained models: scores, printed examples and figures."""
