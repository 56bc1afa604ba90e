"""Which cluster a client belongs to: an address may be given to a node of another one."""

from __future__ import annotations

from typing import Optional

from ._protocol import Cluster, FlakedError, RefusedError, cluster_of, not_flaked, refusal, wrong_node


class Identity:
    """The cluster that a client wants, for the life of the client."""

    def __init__(self, configured: str) -> None:
        self._configured = configured
        self._pinned: Optional[Cluster] = None
        self._pinned_by = ""  #: the address of the first node that answered
        self.error: Optional[RefusedError] = None  #: the addresses belong to two clusters, so all calls fail

    @property
    def unknown(self) -> bool:
        """Report whether the first node that answers decides."""
        return not self._pinned and not self._configured

    def request(self) -> bytes:
        """Return the request with which each connection begins, after AUTH."""
        wanted = self._pinned.uuid if self._pinned else self._configured
        return f"WORKER {wanted}\n".encode("ascii") if wanted else b"WORKER\n"

    def check(self, address: str, line: bytes, comparing: bool) -> Optional[FlakedError]:
        """Take the reply of a node. Return what is wrong. comparing: the addresses of the client are compared."""
        text = line.decode("utf-8", "replace")
        refused = refusal(address, line)
        cluster = cluster_of(text)
        if refused and refused.code != "WRONGNODE":
            return refused
        if not cluster:
            return refused or not_flaked(address, line)
        if cluster.uuid == "none":
            return FlakedError(f"{address} has not joined its cluster yet. Ask it again in a moment")
        if not refused and not self._pinned:
            self._pinned, self._pinned_by = cluster, address
        if not refused and self._pinned and self._pinned.uuid == cluster.uuid:
            return None
        if comparing and self._pinned:
            both = f"{self._pinned_by} to {self._pinned} and {address} to {cluster}"
            self.error = wrong_node(
                address,
                f"the addresses belong to two clusters: {both}. Give nodes of one cluster, or name it with cluster",
            )
        return wrong_node(address, f"{address} belongs to cluster {cluster}, not to {self._pinned or self._configured}")
