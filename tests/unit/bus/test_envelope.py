"""The envelope's headers: CloudEvents binary mode there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.envelope import Envelope
from bus.errors import BusError, EnvelopeInvalid

TEXT = st.text(st.characters(codec="utf-8"), min_size=1)
EXTRA_NAME = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20).filter(
    lambda name: not hasattr(Envelope, name) and name != "specversion"
)


@given(
    st.builds(
        Envelope,
        id=TEXT,
        type=TEXT,
        source=TEXT,
        subject=st.one_of(st.just(""), TEXT),
        data=st.binary(max_size=100),
        run=st.one_of(st.just(""), TEXT),
        attempt=st.integers(0, 10**6),
        deadline=st.one_of(st.none(), st.floats(0, 4e9)),
        hop=st.integers(0, 1000),
        trust=st.sampled_from(["trusted", "untrusted"]),
        store=st.one_of(st.just(""), TEXT),
        traceparent=st.one_of(st.just(""), TEXT),
        tracestate=st.one_of(st.just(""), TEXT),
        extra=st.dictionaries(EXTRA_NAME, TEXT, max_size=3),
    )
)
def test_headers_bring_the_same_envelope_back(envelope: Envelope) -> None:
    assert Envelope.from_headers(envelope.headers(), envelope.data) == envelope


def test_the_least_envelope_has_few_headers() -> None:
    assert Envelope(id="1", type="t", source="/s").headers() == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"1"),
        ("ce_type", b"t"),
        ("ce_source", b"/s"),
        ("content-type", b"application/json"),
        ("ce_trust", b"trusted"),
    ]


def test_header_names_are_read_in_any_case() -> None:
    headers = [("CE_SpecVersion", b"1.0"), ("CE_ID", b"1"), ("ce_Type", b"t"), ("ce_source", b"s")]
    assert Envelope.from_headers([*headers, ("TraceParent", b"00-x")], b"").traceparent == "00-x"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (("ce_id", b""), r"missing: \['id'\]"),
        (("ce_specversion", b"0.3"), "CloudEvents 1.0"),
        (("ce_attempt", b"two"), "numeric attribute"),
        (("ce_deadline", b"soon"), "numeric attribute"),
        (("ce_source", b"\xff"), "UTF-8"),
    ],
)
def test_what_is_not_an_envelope_is_refused_with_the_reason(
    changed: tuple[str, bytes], told: str
) -> None:
    headers = dict(Envelope(id="1", type="t", source="/s").headers()) | dict([changed])
    with pytest.raises(EnvelopeInvalid, match=told):
        Envelope.from_headers(headers.items(), b"")


def test_an_errors_docstring_is_its_message_unless_one_is_given() -> None:
    assert str(EnvelopeInvalid()) == "The message is not a Cadenza envelope."
    assert str(BusError("why")) == "why"
