"""What a sweep looks for in SQLite: runs to advance, to publish, to send again, to close."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from orchestrator.store.base import Due, Resend, Scope

_MAX_RESEND_S = 60.0

# Each part begins at the few rows that may be due, so that ended runs cost nothing.
_ADVANCE = """
WITH live AS MATERIALIZED (SELECT run, mode, status, pipeline_hash, grace_s FROM runs)
"""
