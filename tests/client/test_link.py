"""The states of a link."""

from __future__ import annotations

from antiphon.client.link import STATES, Link, LinkInput, LinkState


def test_every_pair_of_state_and_input_has_an_entry() -> None:
    assert set(STATES) == {(state, input) for state in LinkState for input in LinkInput}


def test_a_link_that_is_gone_stays_gone_with_its_reason() -> None:
    seen: list[LinkState] = []
    link = Link(lambda changed: seen.append(changed.state))
    link._step(LinkInput.LOST, "cut")
    link._step(LinkInput.ENDED, "gave up")
    link._step(LinkInput.RESTORED)
    link._step(LinkInput.LOST, "late")
    assert (link.state, link.reason) == (LinkState.GONE, "gave up")
    assert seen == [LinkState.RECONNECTING, LinkState.GONE]
