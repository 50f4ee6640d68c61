"""Topic names: legal for every broker, and never two meanings for one name."""

from __future__ import annotations

import pytest

from bus.topics import Topics


def test_names_stand_under_the_namespace() -> None:
    topics = Topics("stock")
    assert topics.events == "stock.events"
    assert topics.facts == "stock.facts"
    assert topics.stream == "stock.stream"
    assert topics.work("analyst") == "stock.work.analyst"


@pytest.mark.parametrize(
    "namespace", ["a", "team-7.stock_v2", "0", "a" * 128, "teamwork", "work.a"]
)
def test_a_namespace_of_letters_digits_dots_dashes_is_taken(namespace: str) -> None:
    assert len(Topics(namespace).work("a" * 64)) <= 249


@pytest.mark.parametrize(
    "namespace", ["", ".", "-a", "a/b", "a b", "a#", "a+", "$share", "在庫", "a\n", "a" * 129]
)
def test_other_namespaces_are_refused_by_name(namespace: str) -> None:
    with pytest.raises(ValueError, match="namespace"):
        Topics(namespace)


@pytest.mark.parametrize("namespace", ["work", "a.work"])
def test_a_namespace_that_would_read_as_work_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match="must not end in 'work'"):
        Topics(namespace)


@pytest.mark.parametrize("agent", ["", "a.b", "a/b", "*", "é", "a" * 65])
def test_an_agent_that_cannot_name_a_topic_is_refused(agent: str) -> None:
    with pytest.raises(ValueError, match="agent"):
        Topics("n").work(agent)
