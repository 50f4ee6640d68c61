"""The model port and its adapters."""
