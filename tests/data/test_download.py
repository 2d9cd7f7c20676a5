"""Downloads from a server that misbehaves."""

import hashlib
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from degrade.data import download as downloads
from degrade.data.download import DownloadError, Remote, download

DATA = random.Random(0).randbytes(300_000)
MD5 = hashlib.md5(DATA).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves DATA; `cuts` are the numbers of bytes after which coming connections are cut."""

    cuts: list[int]
    ranges = True
    data = DATA
    codes: list[int]
    asked: list[str]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.server.asked.append(asked)
        if self.server.codes:
            self.send_error(self.server.codes.pop(0))
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.server.ranges else 0
        if start >= len(self.server.data):
            self.send_error(416)
            return
        body = self.server.data[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(self.server.data) - 1}/{len(self.server.data)}")
        self.end_headers()
        self.wfile.write(body[: self.server.cuts.pop(0)] if self.server.cuts else body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(downloads, "PAUSE_SECONDS", 0.0)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server(("127.0.0.1", 0), Handler) as found:
        found.cuts, found.codes, found.asked = [], [], []
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def remote(server: Server, md5: str = MD5) -> Remote:
    return Remote("a.tsv", f"http://127.0.0.1:{server.server_port}/a.tsv", md5)


def test_a_file_and_once_only(server: Server, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    (path,) = download([remote(server)], tmp_path / "data", lambda done, total: told.append((done, total)))
    assert path.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert [p.name for p in path.parent.iterdir()] == ["a.tsv"]
    download([remote(server)], tmp_path / "data")
    assert len(server.asked) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_connections_that_are_cut(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.cuts, server.ranges = [100_000, 0, 50_000], ranges
    (path,) = download([remote(server)], tmp_path)
    assert path.read_bytes() == DATA
    assert len(server.asked) == 4
    if ranges:
        assert server.asked[1:] == ["bytes=100000-", "bytes=100000-", "bytes=150000-"]


def test_a_later_run_goes_on(server: Server, tmp_path: Path) -> None:
    server.cuts = [50_000] + [0] * (downloads.ATTEMPTS - 1)
    with pytest.raises(DownloadError, match="holds 50000 bytes, from which the next run goes on"):
        download([remote(server)], tmp_path)
    assert not (tmp_path / "a.tsv").exists()
    (path,) = download([remote(server)], tmp_path)
    assert path.read_bytes() == DATA
    assert server.asked[-1] == "bytes=50000-"


def test_wrong_bytes(server: Server, tmp_path: Path) -> None:
    server.data = DATA[:-1] + b"?"
    with pytest.raises(DownloadError, match=f"wanted is {MD5}"):
        download([remote(server)], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_beginning_is_thrown_away(server: Server, tmp_path: Path) -> None:
    for part in (b"?" * 1000, b"?" * len(DATA), b"?" * (len(DATA) + 5), DATA):
        (tmp_path / "a.tsv").unlink(missing_ok=True)
        (tmp_path / "a.tsv.part").write_bytes(part)
        (path,) = download([remote(server)], tmp_path)
        assert path.read_bytes() == DATA


def test_server_errors(server: Server, tmp_path: Path) -> None:
    server.codes = [503, 429]
    assert download([remote(server)], tmp_path)[0].read_bytes() == DATA
    server.codes = [404]
    with pytest.raises(DownloadError, match="404"):
        download([remote(server)], tmp_path / "other")
    assert server.codes == []


def test_another_file_of_the_same_name_is_not_touched(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"mine")
    with pytest.raises(DownloadError, match="move it away"):
        download([remote(server)], tmp_path)
    assert (tmp_path / "a.tsv").read_bytes() == b"mine"


def test_no_server(tmp_path: Path, server: Server) -> None:
    with pytest.raises(DownloadError, match="5 attempts"):
        download([Remote("a.tsv", "http://127.0.0.1:1/a.tsv", MD5)], tmp_path)
