"""Redaction: what counts as a secret, and what must stay."""

from __future__ import annotations

import time

import pytest

from agents.redaction import Redactor, secrets_of

REDACTOR = Redactor(environ={})


def test_secret_looking_names_are_found_in_an_environment() -> None:
    environ = {
        "OPENAI_API_KEY": "value-0001",
        "DB_PASSWORD": "value-0002",
        "github_token": "value-0003",
        "AWS_SECRET_ACCESS_KEY": "value-0004",
        "DATABASE_URL": "postgres://shop:value-0005@db/shop",
        "PATH": "/usr/bin",
        "KEYBOARD": "japanese",
        "MAX_TOKENS": "12345678",
        "TOKENIZERS_PARALLELISM": "disabled",
    }
    assert secrets_of(environ) == {f"value-000{i}" for i in range(1, 6)}


def test_known_values_go_in_every_form_and_the_longest_first() -> None:
    redactor = Redactor(
        ["p@ss/wörd", "swordfish", "swordfish-2"], environ={"X_TOKEN": "hunter2-42"}
    )
    assert redactor.redact("p@ss/wörd p%40ss%2Fw%C3%B6rd hunter2-42") == " ".join(
        ["[redacted]"] * 3
    )
    assert redactor.redact("swordfish-2, swordfish") == "[redacted], [redacted]"


def test_short_and_empty_values_do_not_eat_the_text() -> None:
    assert (
        Redactor(["", "a", "true"], environ={"X_KEY": " "}).redact("a true tale") == "a true tale"
    )


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-" + "a1B2" * 8,
        "sk-ant-api03-" + "x_y-" * 8,
        "AKIAIOSFODNN7EXAMPLE",
        "AIza" + "Sy0-" * 8 + "abc",
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1_" * 10,
        "glpat-" + "a1B-" * 5,
        "hf_" + "aB" * 17,
        "xoxb-1234567890-abc",
        "sk_live_" + "4e" * 10,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
    ],
)
def test_common_keys_are_known_by_their_shape(secret: str) -> None:
    assert REDACTOR.redact(f"use '{secret}', please") == "use '[redacted]', please"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc123def456ghi", "Authorization: Bearer [redacted]"),
        ("authorization: basic dXNlcjpwYXNzd29yZDE=", "authorization: basic [redacted]"),
        ("postgres://shop:s3cret@db:5432/x", "postgres://shop:[redacted]@db:5432/x"),
        ('{"api_key": "0123456789abcdef"}', '{"api_key": "[redacted]"}'),
        ("password=hunter2hunter2 next", "password=[redacted] next"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nend",
            "[redacted]\nend",
        ),
    ],
)
def test_secrets_are_known_by_what_stands_before_them(text: str, left: str) -> None:
    assert REDACTOR.redact(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "The bearer of this letter is trusted.",
        "password: required, see the manual",
        "https://example.org/a:b@c and http://localhost:8080/x",
        "task-oriented risk-adjusted-return-on-investment",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "トークンの数は 12345678 です",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert REDACTOR.redact(text) == text


@pytest.mark.parametrize(
    "piece", ["eyJaaaaaaaaa-", "://a:b", "Bearer ", "-----BEGIN A PRIVATE ", "api_key= ", "sk-"]
)
def test_hostile_text_takes_no_longer_than_its_length_asks(piece: str) -> None:
    began = time.perf_counter()
    REDACTOR.redact(piece * (400_000 // len(piece)))
    assert time.perf_counter() - began < 2
