#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies of Ring, each with one line of its protocol changed, for a test that must notice. Fails where ring.hpp no longer
contains the text that a copy changes, or where order.hpp names an order that mutants.cpp does not weaken.

  mutants.py RING.HPP ORDER.HPP MUTANTS.CPP OUTPUT.HPP
"""
import pathlib
import re
import sys

# name: [(old, new)]. The first is no mutant: a Ring with so few open slots that tickets come round.
COPIES = {
    "few_slots": [("kOpenSlots = 64", "kOpenSlots = 2")],
    "doorbell_before_wptr": [
        ("    Order::store(m_.wptr, end, Order::kWptr);\n", ""),
        ("    if (m_.on_doorbell)", "    Order::store(m_.wptr, end, Order::kWptr);\n    if (m_.on_doorbell)"),
    ],
    "wptr_not_stored": [("    Order::store(m_.wptr, end, Order::kWptr);\n", "")],
    "turn_not_passed": [("const auto e = next(now).exchange(turn(position(now)), Order::kPass);", "const std::uint64_t e = 0;")],
    "complete_slot_forgotten": [("        if (e < turn(position(now))) return;", "        return;")],
    "left_by_store": [("mine.exchange(done(s.end), Order::kLeave) != turn(s.begin))",
                       "(mine.store(done(s.end), Order::kTellRead), true))")],
    "passed_by_store": [("const auto e = next(now).exchange(turn(position(now)), Order::kPass);",
                         "const auto e = next(now).load(Order::kFront);\n        next(now).store(turn(position(now)), Order::kTellRead);")],
    "passed_before_the_doorbell": [
        ("        ring(position(now));\n        committed_.store(now, Order::kCommit);\n", "        committed_.store(now, Order::kCommit);\n"),
        ("        if (e < turn(position(now))) return;", "        ring(position(now));\n        if (e < turn(position(now))) return;"),
    ],
    "commit_before_doorbell": [
        ("        ring(position(now));\n        committed_.store(now, Order::kCommit);",
         "        committed_.store(now, Order::kCommit);\n        ring(position(now));"),
    ],
    "commit_after_the_turn": [
        ("        committed_.store(now, Order::kCommit);\n", ""),
        ("        if (e < turn(position(now))) return;", "        committed_.store(now, Order::kCommit);\n        if (e < turn(position(now))) return;"),
    ],
    "turn_of_any_slot": [("kOpenSlots = 64", "kOpenSlots = 2"), ("mine.load(Order::kTurn) != turn(s.begin) && ", "mine.load(Order::kTurn) % 2 == 0 && ")],
    "commit_not_stored": [("        committed_.store(now, Order::kCommit);\n", "")],
    "ring_own_slot_only": [("ring(position(now));", "ring(s.end);")],
    "rings_for_all_reserved": [("ring(position(now));", "ring(position(load(reserved_, Order::kReserve)));")],
    "full_ring_allowed": [("if (end - read >= bytes_) {", "if (end - read > bytes_) {"),
                          ("if (end - load(read_, Order::kSeenRead) >= bytes_) {", "if (end - load(read_, Order::kSeenRead) > bytes_) {")],
    "rptr_not_reloaded": [("const auto read = Order::load(m_.rptr, Order::kRptr);\n        store",
                           "const auto read = load(read_, Order::kSeenRead);\n        store")],
    "stale_position_is_full": [("if (outdated(r)) continue;\n          return full(read)", "return full(read)")],
    "reserved_before_wptr": [
        ("    const auto w = Order::load(m_.wptr, Order::kSeenWptr);\n    const auto reserved = position(load(reserved_, Order::kReserve));\n",
         "    const auto reserved = position(load(reserved_, Order::kReserve));\n    const auto w = Order::load(m_.wptr, Order::kSeenWptr);\n"),
    ],
    "tickets_unlimited": [("kOpenSlots = 64", "kOpenSlots = 2"), ("& kTicketMask) >= kOpenSlots)", "& kTicketMask) >= 200)")],
    "skip_not_filled": [("          fill_nops({at, static_cast<std::size_t>(skip / 4)});\n", "")],
    "rest_not_filled": [("    if (used != s.dwords.size()) fill_nops(s.dwords.subspan(used));\n", "")],
    "slot_across_the_end": [("const bool fits = offset + want <= bytes_;", "const bool fits = true;")],
    "slot_after_the_rest": [("skip + want >= bytes_;", "skip + want > bytes_;")],
    "rest_without_room": [("const auto end = begin + skip + (never_fits ? 0 : want);", "const auto end = begin + (never_fits ? 0 : skip + want);")],
    "reserve_by_store": [("return reserved_.compare_exchange_weak(from, to, Order::kReserve, Order::kReserve);",
                          "reserved_.store(to, Order::kReserve), from = from + 0;")],
    "no_fence_for_dwords": [("    Order::before_wptr(m_.caching, &s.dwords.back());\n", "")],
    "fenced_by_the_ringer": [
        ("    Order::before_wptr(m_.caching, &s.dwords.back());\n", ""),
        ("    Order::store(m_.wptr, end, Order::kWptr);\n", "    Order::before_wptr(m_.caching, m_.dwords.data());\n    Order::store(m_.wptr, end, Order::kWptr);\n"),
    ],
    "no_fence_before_doorbell": [("    Order::before_doorbell(m_.caching);\n", "")],
}


def copy(ring, name, changes):
    begin = ring.index("template <Producers K, class OrderOf> class Ring {")
    end = ring.index("\n};\n", begin) + 4
    # Without comments: what a copy changes is code, whatever is said about it.
    text = re.sub(r"[ \t]*//[^\n]*", "", ring[begin:end])
    for old, new in changes:
        if text.count(old) != 1:
            sys.exit(f"{name}: ring.hpp has {text.count(old)} times, and not once:\n{old}")
        text = text.replace(old, new)
    declared = "template <Producers K = Producers::one, class OrderOf = order::Native> class Ring;"  # as forward.hpp does
    return f"namespace {name} {{\n{declared}\n{text}}}\n"


def main(ring, order, tests, output):
    ring, order, tests = (pathlib.Path(p).read_text(encoding="utf-8") for p in (ring, order, tests))
    named = dict(re.findall(r"static constexpr auto (k\w+) = std::memory_order_(\w+);", order))
    if len(named) < 10:
        sys.exit("order.hpp: its constants are not found")
    weakened = re.findall(r"WEAKEN\((k\w+)\)", tests)
    missing = [name for name, strength in named.items() if strength != "relaxed" and name not in weakened]
    if missing:
        sys.exit(f"mutants.cpp weakens no {', '.join(missing)}")
    mutants = [name for name in COPIES if name != "few_slots"]
    pathlib.Path(output).write_text(
        "#pragma once\n// Generated from ring.hpp by mutants.py.\n#include \"sdma/queue/ring.hpp\"\n\nnamespace sdma {\n"
        + "".join(copy(ring, name, changes) for name, changes in COPIES.items())
        + "}  // namespace sdma\n#define SDMA_MUTANTS(X) " + " ".join(f"X({name})" for name in mutants) + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
