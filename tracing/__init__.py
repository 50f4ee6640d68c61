"""Traces: names, spans, set-up, and reading a trace back."""
