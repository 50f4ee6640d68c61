"""The run store: its port and the SQLite implementation."""
