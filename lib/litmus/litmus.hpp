// SPDX-License-Identifier: MIT
#pragma once
// Litmus programs: a few packets each, whose outcome shows which packets are ordered. docs/litmus.md is their table.
//
//   Program{.rule = "Q5", .name = "copy-after-fence", .question = "...",
//           .engines = {0},                                            // a queue on each of these engines
//           .setup = [](World& w) { w.put(0, CopyLinear{...}); w.ring(0); },
//           .outcome = [](World& w) { return w.load(kB) == 1 ? "before" : "after"; },
//           .outcomes = {{"before", true, true}, {"after", false, false}}}
//
// A program speaks to a World only: words, rings, doorbells, and a kernel's loads and stores. It is run on the software
// engine with every sequence of choices, and with many seeds; the same program runs on a device, as often as one
// likes, and its histogram is compared with the table. A World of a device keeps the steps' order and gives each a
// moment to happen.
#include "sdma/packets/registry.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::litmus {

/// What a program can do. Words are 32 bits, 64 bytes apart, and begin as 0. Those from kVram on lie in the memory of
/// the queues' GPU, the others in host memory.
class World {
 public:
  static constexpr std::uint32_t kWords = 16, kVram = 14;
  static constexpr std::uint64_t kPitch = 64;

  virtual ~World() = default;
  virtual GpuVa va(std::uint32_t word) const = 0;
  virtual std::uint32_t load(std::uint32_t word) = 0;  ///< by the host
  /// By the host; `dword` of the 16 that lie from this word to the next.
  virtual void store_dword(std::uint32_t word, std::uint32_t dword, std::uint32_t value) = 0;
  void store(std::uint32_t word, std::uint32_t value) { store_dword(word, 0, value); }
  /// By a wave of a kernel on the queues' GPU, through its L2, with no cache action before or after.
  virtual std::uint32_t kernel_load(std::uint32_t word) = 0;
  virtual void kernel_store(std::uint32_t word, std::uint32_t value) = 0;
  /// Dwords into the ring of a queue; gives the position of the first, in dwords.
  virtual std::uint64_t put_dwords(std::uint32_t queue, std::span<const std::uint32_t>) = 0;
  virtual void ring(std::uint32_t queue) = 0;  ///< the doorbell, for all that was put
  /// Overwrites a published dword: what nobody may do, which is why it is a test.
  virtual void patch(std::uint32_t queue, std::uint64_t dword, std::uint32_t value) = 0;
  virtual std::size_t ring_dwords() const = 0;
  virtual std::uint64_t rptr(std::uint32_t queue) = 0;  ///< bytes, as the host sees it

  template <Packet P> std::uint64_t put(std::uint32_t queue, const P& p) {
    std::vector<std::uint32_t> d(length(p));
    encode_to(p, d.data());
    return put_dwords(queue, d);
  }
  /// Orders all later packets of the queue after all earlier ones: the only full barrier (rule Q7).
  void barrier(std::uint32_t queue, std::uint32_t word, std::uint32_t fresh) {
    put(queue, Fence{.addr = va(word), .value = fresh});
    put(queue, PollMem{.addr = va(word), .func = Compare::eq, .reference = fresh});
  }
};

/// Something that the host does, in the order of the list.
struct Step {
  static constexpr std::uint32_t kAnyTime = ~0u;
  std::function<void(World&)> act;
  std::uint32_t when_stands = kAnyTime;  ///< this queue can do no more, for now
};

struct Expected {
  std::string_view outcome;
  bool rocr, strict;  ///< seen in these orderings as well; adversarial shows all
};

/// Parts of the model that a program is about: leaving others out keeps the search small. Seeded runs have all.
struct Parts {
  bool prefetch = false, late_rptr = false, holding_polls = false, split_stores = false;
  std::uint32_t pieces = 1;
};

struct Program {
  std::string_view rule, name, question;
  std::vector<std::uint32_t> engines{0};
  std::function<void(World&)> setup;
  std::vector<Step> host{};
  std::function<std::string(World&)> outcome;
  std::vector<Expected> outcomes;
  std::optional<std::uint32_t>
      release{};  ///< after the outcome, 1 is stored to this word, so that no poll waits for ever
  Parts parts{};
  bool vram = false;  ///< it uses the words from World::kVram on: only for a device that maps VRAM for the host
};

std::vector<Program> queue_programs();   ///< inside one queue: Q
std::vector<Program> engine_programs();  ///< between queues, rings, registers: X, H, E

}  // namespace sdma::litmus
