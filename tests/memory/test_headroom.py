from anybatch.memory import headroom
from anybatch.memory.ceilings import AddressSpace
from anybatch.memory.headroom import CUSHION_BYTES, Headroom

MB = 1 << 20


def told(monkeypatch, *, limit, taken, peak):
    space = None if limit is None else AddressSpace(limit * MB, taken * MB, peak * MB)
    monkeypatch.setattr(headroom.AddressSpace, "of_this_process", lambda: space)


def test_without_a_limit_everything_fits(monkeypatch):
    told(monkeypatch, limit=None, taken=0, peak=0)
    room = Headroom()
    room.went_through(512)
    assert room.missing_bytes(1 << 40) == 0


def test_what_rows_took_tells_how_many_more_fit(monkeypatch):
    room = Headroom()
    told(monkeypatch, limit=1000, taken=500, peak=600)
    assert room.missing_bytes(100) == 0  # nothing is known yet
    told(monkeypatch, limit=1000, taken=500, peak=700)
    room.went_through(100)  # 2 MB a row
    assert room.missing_bytes(250 - CUSHION_BYTES // (2 * MB)) == 0
    assert room.missing_bytes(250) == CUSHION_BYTES
    told(monkeypatch, limit=800, taken=500, peak=700)
    assert room.missing_bytes(250) == CUSHION_BYTES + 200 * MB
    told(monkeypatch, limit=520, taken=500, peak=700)
    assert (room.missing_bytes(5), room.missing_bytes(6)) == (0, 2 * MB)


def test_a_peak_from_before_is_nobodys(monkeypatch):
    room = Headroom()
    told(monkeypatch, limit=1000, taken=500, peak=990)
    assert room.missing_bytes(100) == 0
    room.went_through(100)
    assert room.missing_bytes(1000) == 0
