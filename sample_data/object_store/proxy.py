"""A proxy before the server of an object store: forwards requests unchanged, delays them, and counts bytes served."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from sample_data.object_store.shape import UNSHAPED, Shape, TokenBucket

_PIECE = 64 << 10
_END_OF_HEAD = b"\r\n\r\n"
_CHUNKED = "chunked"
_WITHOUT_BODY = frozenset({"204", "304"})
# The response of an overloaded store. Only requests without a body are refused, before they reach the server.
_REFUSED_METHODS = frozenset({"GET", "HEAD"})
_REFUSAL = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>'
)
_REFUSAL_HEAD = (
    f"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: {len(_REFUSAL)}\r\n\r\n".encode()
)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the headers of a message; names in lower case."""

    raw: bytes
    first: tuple[str, ...]
    headers: Mapping[str, str]

    @staticmethod
    def of(raw: bytes) -> Head:
        """The head of a message, parsed from all bytes up to the empty line."""
        first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return Head(raw, tuple(first.split(" ", 2)), {name.strip().lower(): value.strip() for name, _, value in pairs})

    @property
    def is_chunked(self) -> bool:
        """True if the body has chunked transfer encoding."""
        return self.headers.get("transfer-encoding", "").lower() == _CHUNKED

    @property
    def length(self) -> int | None:
        """Bytes of the body; None if there is no Content-Length."""
        told = self.headers.get("content-length")
        return None if told is None else int(told)

    @property
    def closes(self) -> bool:
        """True if the connection closes after this message."""
        return self.headers.get("connection", "").lower() == "close"


@dataclass(slots=True)
class Proxy:
    """A proxy with counters of all requests and of the body bytes of GET responses since the last reset."""

    listens: str
    """The path of the server's Unix socket."""
    shape: Shape = UNSHAPED
    served: int = 0
    requests: int = 0
    refusals: int = 0
    """The number of the next GET and HEAD requests to answer by 503; they count as requests."""
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _bucket: TokenBucket = field(default_factory=lambda: TokenBucket.of(UNSHAPED))

    def reshape(self, shape: Shape) -> None:
        """Sets latency and bandwidth, from the next request on."""
        self.shape, self._bucket = shape, TokenBucket.of(shape)

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forwards all requests of one client connection."""
        # Bytes count once the system has accepted them, so the proxy buffers at most one piece.
        writer.transport.set_write_buffer_limits(0)
        server: Streams | None = None
        try:
            while request := await _head(reader):
                if self.refusals and request.first[0] in _REFUSED_METHODS:
                    await self._refuse(request, writer)
                    continue
                if server is None or server[0].at_eof():
                    _close(server)
                    server = await asyncio.open_unix_connection(self.listens, limit=4 * _PIECE)
                if not await self._exchange(request, (reader, writer), server):
                    break
                if _ends_connection(request):
                    _close(server)
                    server = None
        except (OSError, EOFError, ValueError):
            # One side has closed, or does not speak HTTP, so the connection to the other side is closed.
            pass
        finally:
            _close(server)
            writer.close()

    async def _refuse(self, request: Head, client: asyncio.StreamWriter) -> None:
        self.refusals, self.requests = self.refusals - 1, self.requests + 1
        await self.sleep(self.shape.latency)
        client.write(_REFUSAL_HEAD if request.first[0] == "HEAD" else _REFUSAL_HEAD + _REFUSAL)
        await client.drain()

    async def _exchange(self, request: Head, client: Streams, server: Streams) -> bool:
        """Forwards one request and its response; returns True if another request may follow on the connection."""
        self.requests += 1
        await self.sleep(self.shape.latency)
        server[1].write(request.raw)
        # The upload runs concurrently, because the server may request the body first (100 Continue), or refuse it.
        upload = asyncio.create_task(_upload(request, client[0], server[1]))
        try:
            response = await self._pass_head(client[1], server[0])
            async for piece, is_body in _body(request, response, server[0]):
                await self.sleep(self._bucket.delay(len(piece), self.now()))
                client[1].write(piece)
                await client[1].drain()
                if is_body and request.first[0] == "GET":
                    self.served += len(piece)
            return upload.done() and not (request.closes or response.closes or _lasts(response))
        finally:
            upload.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, EOFError, ValueError):
                await upload

    async def _pass_head(self, client: asyncio.StreamWriter, server: asyncio.StreamReader) -> Head:
        """Forwards the head of the response and any 1xx heads before it; returns the head of the response."""
        while True:
            found = await _head(server)
            if found is None:
                raise EOFError
            client.write(found.raw)
            await client.drain()
            if not found.first[1].startswith("1"):
                return found


async def _head(reader: asyncio.StreamReader) -> Head | None:
    """The next head; None if the connection has ended."""
    try:
        return Head.of(await reader.readuntil(_END_OF_HEAD))
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    except asyncio.LimitOverrunError as error:
        raise ValueError(str(error)) from error


async def _upload(request: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    pieces = _chunks(reader) if request.is_chunked else _counted(reader, request.length or 0)
    async for piece, _ in pieces:
        writer.write(piece)
        await writer.drain()


def _body(request: Head, response: Head, reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bool]]:
    """Pieces to forward, each with True for bytes of the body and False for chunk framing."""
    if request.first[0] == "HEAD" or response.first[1] in _WITHOUT_BODY:
        return _counted(reader, 0)
    return _chunks(reader) if response.is_chunked else _counted(reader, response.length)


async def _counted(reader: asyncio.StreamReader, left: int | None) -> AsyncIterator[tuple[bytes, bool]]:
    """Pieces of the next `left` bytes, or of all bytes until the end if `left` is None."""
    while left is None or left > 0:
        piece = await reader.read(_PIECE if left is None else min(left, _PIECE))
        if not piece:
            if left is None:
                return
            raise EOFError
        left = None if left is None else left - len(piece)
        yield piece, True


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bool]]:
    """Pieces of a chunked body with its framing, up to the last chunk, the trailers and the final empty line."""
    while True:
        line = await reader.readline()
        yield line, False
        left = int(line.partition(b";")[0], 16)
        if not left:
            break
        async for piece in _counted(reader, left):
            yield piece
        yield await reader.readexactly(2), False
    while (line := await reader.readline()).strip():
        yield line, False
    yield line, False


def _lasts(response: Head) -> bool:
    """True if the body ends with the connection."""
    return response.length is None and not response.is_chunked and response.first[1] not in _WITHOUT_BODY


def _ends_connection(request: Head) -> bool:
    """True for an upload in chunks, after which versitygw answers some requests on the connection with 400."""
    signed_in_pieces = request.headers.get("x-amz-content-sha256", "").startswith("STREAMING")
    return request.is_chunked or signed_in_pieces


def _close(streams: Streams | None) -> None:
    if streams is not None:
        streams[1].close()
