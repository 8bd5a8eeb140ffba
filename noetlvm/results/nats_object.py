"""Results as objects in a bucket of NATS JetStream.

The client of NATS is asynchronous, so it runs in an event loop of its own thread. JetStream syncs its files every two
minutes unless the server is configured with `sync_interval: always`; durability across power cuts needs that, or
replicas.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Collection, Coroutine, Iterable, Iterator
from contextlib import suppress
from math import inf
from typing import Any, TypeVar

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import ObjectInfo, ObjectMeta, StorageType
from nats.js.errors import BadRequestError, NotFoundError
from nats.js.object_store import ObjectStore

from noetlvm.results.interface import Collected, ResultMissingError, checked, is_key, require_key
from noetlvm.store.interface import StoreError

_Done = TypeVar("_Done")

_SECONDS = 30.0
"""How long an operation may take."""
_PUT_AT = "noetlvm-put-at"
"""Header with the time of the last put: JetStream's own time does not change when an object is put again."""


class NatsObjectResults:
    """Results in a bucket, which is created if it does not exist."""

    def __init__(self, address: str, bucket: str, replicas: int = 1) -> None:
        self.name = f"the bucket {bucket}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"nats {bucket}", daemon=True)
        self._thread.start()
        try:
            self._client, self._objects = self._run(_opened(address, bucket, replicas))
        except StoreError:
            self._stop()
            raise

    def close(self) -> None:
        """Close the connection. Idempotent."""
        if self._loop.is_closed():
            return
        with suppress(StoreError):
            self._run(self._client.close())
        self._stop()

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        wanted = {require_key(key): data for key, data in blobs}
        if wanted:
            self._run(self._put(wanted))

    async def _put(self, wanted: dict[str, bytes]) -> None:
        for key, data in wanted.items():
            meta = ObjectMeta(name=key, headers={_PUT_AT: [repr(time.time())]})
            found = await self._info(key)
            if found is not None and found.size == len(data):
                await self._objects.update_meta(key, meta)
            else:
                await self._objects.put(key, data, meta)

    def get(self, key: str) -> bytes:
        data = self._run(self._get(require_key(key)))
        return checked(key, data, f"the result {key} in {self.name}")

    async def _get(self, key: str) -> bytes:
        try:
            return (await self._objects.get(key)).data or b""
        except NotFoundError:
            raise ResultMissingError(f"{self.name} has no result {key}") from None

    def keys(self) -> Iterator[str]:
        return (info.name for info in self._run(self._infos()))

    def collect_garbage(self, referenced: Collection[str], before: float = inf) -> Collected:
        return self._run(self._collect(referenced, before))

    async def _collect(self, referenced: Collection[str], before: float) -> Collected:
        removed = freed = 0
        for info in await self._infos():
            if info.name not in referenced and _put_at(info) < before:
                await self._objects.delete(info.name)
                removed += 1
                freed += info.size or 0
        return Collected(removed, freed)

    async def _info(self, key: str) -> ObjectInfo | None:
        try:
            return await self._objects.get_info(key)
        except NotFoundError:
            return None

    async def _infos(self) -> list[ObjectInfo]:
        try:
            found = await self._objects.list(ignore_deletes=True)
        except NotFoundError:
            return []
        return [info for info in found if is_key(info.name) and not info.deleted]

    def _run(self, work: Coroutine[Any, Any, _Done]) -> _Done:
        if self._loop.is_closed():
            work.close()
            raise StoreError("the store is closed")
        waiting = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, _SECONDS), self._loop)
        try:
            return waiting.result()
        except (NatsError, OSError, TimeoutError) as error:
            raise StoreError(f"{self.name}: NATS does not answer ({error or type(error).__name__})") from error

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _opened(address: str, bucket: str, replicas: int) -> tuple[Client, ObjectStore]:
    client = await nats.connect(address, allow_reconnect=True, max_reconnect_attempts=-1, error_cb=_ignore)
    streams = client.jetstream()
    try:
        return client, await streams.object_store(bucket)
    except NotFoundError:
        pass
    try:
        return client, await streams.create_object_store(bucket, storage=StorageType.FILE, replicas=replicas)
    except BadRequestError:  # another process has made it in between
        return client, await streams.object_store(bucket)


async def _ignore(_error: Exception) -> None:
    """The client reconnects by itself; without this it would print a traceback."""


def _put_at(info: ObjectInfo) -> float:
    try:
        value = (info.headers or {})[_PUT_AT]
        return float(value[0] if isinstance(value, list) else value)
    except (LookupError, ValueError):
        return 0.0
