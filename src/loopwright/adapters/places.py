"""What the jails of one slot are made of, for each plan."""

import os
from contextlib import ExitStack
from pathlib import Path

from loopwright.adapters.launchers import VIEW, Place
from loopwright.adapters.plans import Plan
from loopwright.adapters.root_store import RootKind, RootStore
from loopwright.adapters.strictness import ENTROPY, write_entropy
from loopwright.contracts.failures import SandboxUnavailable
from loopwright.core.protocols import Blobs

_NAME_DIGITS = 12
"""Of its digest, what names a package folder below ``/packages``."""


class Places:
    """Makes the places of one slot, and holds the roots that the present one is made of."""

    def __init__(
        self, folder: Path, uid: int, *, roots: RootStore | None, blobs: Blobs | None
    ) -> None:
        """Take the slot's folder, the user id its launcher knows, this host's roots and blobs."""
        self._folder, self._uid, self._roots, self._blobs = folder, uid, roots, blobs
        self._held = ExitStack()

    def make(self, plan: Plan) -> Place:
        """Give the place for a plan; what the one before held is let go.

        Raises:
            RootMissing: this host has no such root or package folder.
            StoreError: the workspace that it begins with cannot be had.
            SandboxUnavailable: a root is of the other kind, or this host keeps none.
        """
        self.close()
        view = VIEW / self._folder.name
        packages = tuple(
            (f"{self._hold(digest, RootKind.PACKAGES)}:{VIEW}/empty", digest[:_NAME_DIGITS])
            for digest in plan.packages
        )
        below = self._hold(plan.root, RootKind.ROOT) if plan.root else VIEW / "skeleton"
        return Place(
            folder=self._folder,
            view=view,
            devices=view / "dev" if self._uid else Path("/dev"),
            entropy=self._entropy(plan, view),
            root_layers=f"{VIEW}/points:{below}",
            usr_layers="" if plan.root else f"/usr:{VIEW}/empty",
            packages=packages,
            base=self._hold_base(plan.base) if plan.base else "",
            uid=self._uid,
        )

    @property
    def owner(self) -> int:
        """User id of the programs on the host."""
        return self._uid or os.geteuid()

    def close(self) -> None:
        """Let go of the roots."""
        self._held.close()

    def _hold_base(self, digest: str) -> str:
        if self._blobs is None:
            raise SandboxUnavailable("these jails have no kept workspaces to begin with")
        return str(self._held.enter_context(self._blobs.base_folder(digest)))

    def _hold(self, digest: str, kind: RootKind) -> Path:
        if self._roots is None:
            raise SandboxUnavailable("these jails have no roots but the host's own")
        root = self._held.enter_context(self._roots.hold(digest))
        if root.kind is not kind:
            raise SandboxUnavailable(f"root {digest} is of kind {root.kind}, expected {kind}")
        return root.folder

    def _entropy(self, plan: Plan, view: Path) -> Path:
        if plan.strict is not None:
            write_entropy(self._folder / ENTROPY, plan.strict.seed)
            return view / ENTROPY
        return view / "dev" / "urandom" if self._uid else Path("/dev/urandom")
