# SPDX-License-Identifier: MIT
"""Packets as values: one class per packet, made from the registry of the library.

    from sdma.packets import CopyLinear, PollMem
    p = CopyLinear(src=0x7f0000000000, dst=0x7f0000100000, bytes=4096)
    p.bytes, p.fields, p.dwords, str(p)

The names of classes are those of the C++ structs; `help(CopyLinear)` lists the fields. Fields are keyword arguments: numbers, flags
(True), names of enumerants ("ge") and lists of dwords. A field with a default may be left out. A packet never changes, and two packets
are equal if their dwords are. Errors: TypeError for a field that the packet does not have, Error for a value that does not fit.
"""
from __future__ import annotations

import operator
import struct
from typing import TYPE_CHECKING, Any, Sequence

from . import _sdma

_classes: dict[str, type[Packet]] = {}
DEFAULT: str = _sdma.default_generation


class Packet:
    """Any packet. It never changes. Fields are attributes, and keyword arguments of the class. `generation`: the engines that it is for;
    `epochs`: the fields whose value depends on the epoch (sdma.EPOCH)."""

    __slots__ = {"_data": None, "_fields": None, "generation": "The generation of engines that it is for: \"4.4.2\".",
                 "epochs": "The fields whose value depends on the epoch (sdma.EPOCH), with these values."}
    name: str | None = None
    """Its name in text; None of what is not a packet."""
    generation: str
    epochs: dict[str, Any]
    _described = None  # name -> (doc, kind, optional, default, enumerants); None: the fields are not known

    def __init__(self, *, generation: str = DEFAULT, **fields: Any):
        line, epochs = _line(type(self), fields)
        self._make(_sdma.assemble(line, type(self).__name__, generation), generation, epochs)

    def _make(self, data, generation, epochs):
        for name, value in (("_data", data), ("_fields", None), ("generation", generation), ("epochs", epochs)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError(f"a packet does not change: make another {type(self).__name__}")

    @property
    def fields(self) -> dict[str, Any]:
        """Every field by name: int, bool, the name of an enumerant, or a list of dwords; those that text leaves out, too. Values that
        depend on the epoch are 0 here, and listed in `epochs`."""
        if self._fields is None:
            object.__setattr__(self, "_fields", _sdma.fields(self._data, self.generation))
        return dict(self._fields)

    @property
    def dwords(self) -> list[int]:
        """The packet as an engine reads it, in 32-bit numbers."""
        return list(struct.unpack(f"={len(self._data) // 4}I", self._data))

    def __bytes__(self) -> bytes:
        return self._data

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            fields = self.fields
            if name in fields:
                return fields[name]
        raise AttributeError(f"{type(self).__name__} has no field '{name}'{_nearest(name, self._described or ())}")

    def __dir__(self):
        return [*super().__dir__(), *self.fields]

    def __eq__(self, other):
        if not isinstance(other, Packet):
            return NotImplemented
        return (self._data, self.generation, self.epochs) == (other._data, other.generation, other.epochs)

    def __hash__(self):
        return hash(self._data)

    def __str__(self):
        return _sdma.packets_text(self._data, self.generation).rstrip("\n")

    def __repr__(self):
        words = []
        for name, value in {**self.fields, **self.epochs}.items():
            doc, kind, optional, default, names = self._described[name]
            if optional and not isinstance(value, list) and names.get(value, value) == default:
                continue
            hexadecimal = kind in ("address", "hex") and isinstance(value, int)
            words.append(f"{name}={value:#x}" if hexadecimal else f"{name}={value!r}")
        if self.generation != DEFAULT:
            words.append(f"generation={self.generation!r}")
        return f"{type(self).__name__}({', '.join(words)})"

    def __reduce__(self):
        return (_restored, (self.name, self._data, self.generation, self.epochs))


class Unknown(Packet):
    """Dwords that are not a whole packet: an unknown opcode, a packet that is cut off, or one whose fields are not described."""

    __slots__ = ()
    _described = {}

    def __init__(self, dwords: Sequence[int], *, generation: str = DEFAULT):
        self._make(struct.pack(f"={len(dwords)}I", *dwords), generation, {})

    def __repr__(self):
        return f"Unknown([{', '.join(f'{d:#010x}' for d in self.dwords)}])"


def _nearest(word, known):
    import difflib

    close = difflib.get_close_matches(word, known, 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def _line(kind, fields):
    """The packet as a line of text, and the values that depend on the epoch."""
    described = kind._described
    if described is None:
        raise TypeError(f"{kind.__name__} is not described by any public source: use sdma.packets.Unknown(dwords)")
    words, epochs = [kind.name], {}
    for name, value in fields.items():
        if name not in described:
            raise TypeError(f"{kind.__name__} has no field '{name}'{_nearest(name, described)}")
        what = described[name][1]
        if hasattr(value, "sample"):
            raise TypeError(f"{kind.__name__}.{name} cannot be a sample: packets are built before a thread samples")
        if hasattr(value, "factor") and hasattr(value, "constant"):
            if what != "value":
                raise TypeError(f"{kind.__name__}.{name} cannot depend on the epoch: only a value can")
            epochs[name], value = value, 0
        if what == "payload":
            words.append(f"{name}=[{' '.join(str(operator.index(d)) for d in value)}]")
        elif what == "flag":
            if value not in (True, False):
                raise TypeError(f"{kind.__name__}.{name} is a flag: pass True or False")
            words += [name] if value else []
        elif isinstance(value, str):
            if not value.isidentifier():
                raise TypeError(f"{kind.__name__}.{name} is a number or a name, not '{value}'")
            words.append(f"{name}={value}")
        else:
            try:
                words.append(f"{name}={operator.index(value)}")
            except TypeError:
                raise TypeError(f"{kind.__name__}.{name} is a number or a name, not {type(value).__name__}") from None
    return " ".join(words), epochs


def _restored(name, data, generation, epochs=None):
    kind = _classes.get(name, Unknown)
    packet = object.__new__(kind)
    packet._make(data, generation, epochs or {})
    return packet


def _class(name, doc, fields):
    described = None if fields is None else {}
    lines = [doc, ""]
    for field, about, kind, optional, default, names in fields or ():
        described[field] = (about, kind, optional, default, names)
        words = f": {', '.join(names)}" if names else ""
        lines.append(f"    {field}: {kind}{', may be left out' if optional else ''}: {about}{words}")
    camel = "".join(word.capitalize() for word in name.split("_"))
    body = {"__slots__": (), "__doc__": "\n".join(lines), "name": name, "_described": described, "__module__": __name__}
    return type(camel, (Packet,), body)


def _all():
    for generation in (DEFAULT, *_sdma.generations):
        for name, doc, fields in _sdma.registry(generation):
            # A packet may have fields only in a later generation.
            if name not in _classes or (fields and _classes[name]._described is None):
                _classes[name] = _class(name, doc, fields)
                globals()[_classes[name].__name__] = _classes[name]
            elif fields:
                known = _classes[name]._described
                for field, *about in fields:
                    known.setdefault(field, tuple(about))


if TYPE_CHECKING:  # Each packet is a class of this module.

    def __getattr__(name: str) -> type[Packet]: ...


_all()
__all__ = ["Packet", "Unknown", *(kind.__name__ for kind in _classes.values())]
