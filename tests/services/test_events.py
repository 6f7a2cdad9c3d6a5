import itertools

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.events import EventReader

STREAM = b'data: {"a": 1}\n\n: ping\n\ndata: x\r\ndata:y\r\n\r\nevent: z\ndata: \r\rdata: last'
DATA = [b'{"a": 1}', b"x\ny", b"", b"last"]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_are_the_same_however_their_stream_is_cut(cuts: list[int]) -> None:
    reader = EventReader(1000)
    found: list[bytes] = []
    places = [0, *sorted(cuts), len(STREAM)]
    for start, end in itertools.pairwise(places):
        found += reader.feed(STREAM[start:end])
    assert [*found, *reader.end()] == DATA
