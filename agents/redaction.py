"""Redaction: secrets are taken out of text before a model sees it or a store keeps it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

MASK = "[redacted]"
SHORTEST_SECRET = 8

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|APIKEY|CREDENTIALS?|KEY)(?:_[A-Z0-9]*)?$",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(://[^\s/:@]*:)([^\s/@]+)(?=@)")
# Shapes as their issuers publish them; each is linear in the length of the text.
_SHAPES = re.compile(
    r"""
    \b(?:
      sk-[A-Za-z0-9_-]{20,}                                # OpenAI, Anthropic, OpenRouter
    | [rs]k_(?:live|test)_[A-Za-z0-9]{16,}                 # Stripe
    | (?:AKIA|ASIA)[0-9A-Z]{16}                            # AWS
    | AIza[0-9A-Za-z_-]{35}                                # Google
    | gh[pousr]_[A-Za-z0-9]{36,} | github_pat_\w{22,}      # GitHub
    | glpat-[A-Za-z0-9_-]{20,}                             # GitLab
    | hf_[A-Za-z0-9]{30,}                                  # Hugging Face
    | xox[abeoprs]-[A-Za-z0-9-]{10,}                       # Slack
    )
    | (?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*            # JSON Web Token
    | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----[^-]*(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----)?
    """,
    re.VERBOSE,
)
_BEARER = re.compile(r"\b(Bearer|Basic)(\s+)(?=[^\s]*[0-9])[A-Za-z0-9._~+/-]{12,}=*", re.IGNORECASE)
# A digit is asked for so that prose such as "password: required" stays.
_ASSIGNED = re.compile(
    r"""((?:api[_-]?key|(?:access|auth|refresh)[_-]?token|client[_-]?secret|secret[_-]?key|passw(?:or)?d)
    ["']?\s{0,3}[:=]\s{0,3}["']?)(?=[^\s"',;]{0,64}[0-9])[^\s"',;]{8,}""",
    re.IGNORECASE | re.VERBOSE,
)


def secrets_of(environ: Mapping[str, str]) -> set[str]:
    """Return the values whose names look secret, and the passwords within URLs."""
    found = {value for name, value in environ.items() if _SECRET_NAME.search(name)}
    return found | {m[2] for value in environ.values() for m in _USERINFO.finditer(value)}


class Redactor:
    """Replaces secrets by ``[redacted]``.

    It knows the values of environment variables whose names look secret, the values it is given,
    and the shapes of common keys, bearer tokens and passwords in URLs.

    Args:
        secrets: Further secret values, for example API keys of the configuration. Values under
            8 characters are left alone: they would also match harmless text.
        environ: The environment; by default that of the process at this moment.
    """

    def __init__(
        self, secrets: Iterable[str] = (), *, environ: Mapping[str, str] | None = None
    ) -> None:
        known = {*secrets, *secrets_of(os.environ if environ is None else environ)}
        forms = {
            form
            for secret in known
            if len(secret.strip()) >= SHORTEST_SECRET
            for form in (secret.strip(), quote(secret.strip(), safe=""), json.dumps(secret)[1:-1])
        }
        # The longest first, so that a secret that contains another goes whole.
        longest_first = sorted(forms, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def redact(self, text: str) -> str:
        """Return the text with every secret replaced."""
        if self._values is not None:
            text = self._values.sub(MASK, text)
        text = _SHAPES.sub(MASK, text)
        text = _BEARER.sub(rf"\1\2{MASK}", text)
        text = _USERINFO.sub(rf"\1{MASK}", text)
        return _ASSIGNED.sub(rf"\1{MASK}", text)
