# SPDX-License-Identifier: MIT
"""Packets as values. The classes are made from the registry of the library when the package is imported: `__all__` lists them."""
from typing import Any

class Packet:
    """Any packet. It never changes. Fields are attributes, and keyword arguments of the class."""
    name: str | None
    """Its name in text; None of what is not a packet."""
    generation: str
    epochs: dict[str, Any]
    """The fields whose value depends on the epoch (sdma.EPOCH)."""
    def __init__(self, *, generation: str = ..., **fields: Any) -> None: ...
    @property
    def fields(self) -> dict[str, Any]:
        """Every field by name: int, bool, the name of an enumerant, or a list of dwords."""
    @property
    def dwords(self) -> list[int]: ...
    def __bytes__(self) -> bytes: ...
    def __getattr__(self, name: str) -> Any: ...

class Unknown(Packet):
    """Dwords that are not a whole packet of the generation."""
    def __init__(self, dwords: list[int], *, generation: str = ...) -> None: ...

def __getattr__(name: str) -> type[Packet]: ...
