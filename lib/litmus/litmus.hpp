// SPDX-License-Identifier: MIT
#pragma once
// Litmus programs: a few packets each, whose outcome shows which packets are ordered. Each is a text; docs/litmus.md is
// the manual of their form, and the table of those in share/sdma/litmus, which are a part of every program that runs
// them.
//
//   const auto p = read_program(text, "mine.litmus");
//   if (!p) for (const auto& e : p.error()) puts(to_string(e).c_str());     // each with its line
//   histogram[world.run()] += 1;                                            // litmus/device.hpp: on a device
//
// A program speaks to a World only: words, rings, doorbells, and a kernel's loads and stores. It is run on the software
// engine with every sequence of choices, and with many seeds; the same program runs on a device, as often as one
// likes, and its histogram is compared with the table. A World of a device keeps the steps' order and gives each a
// moment to happen. A Program is constant, and any thread may use it; a World belongs to one thread.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma::litmus {

/// What a program can do. Words are 32 bits, 64 bytes apart, and begin as 0. Those from kVram on lie in the memory of
/// the queues' GPU, the others in host memory.
class World {
 public:
  static constexpr std::uint32_t kWords = 16, kVram = 14, kPitch = 64;
  static constexpr std::uint32_t kRing = 256;  ///< dwords

  virtual ~World() = default;
  virtual GpuVa va(std::uint32_t word) const = 0;
  virtual std::uint32_t load(std::uint32_t word) = 0;  ///< by the host
  /// By the host; `dword` of the 16 that lie from this word to the next.
  virtual void store_dword(std::uint32_t word, std::uint32_t dword, std::uint32_t value) = 0;
  void store(std::uint32_t word, std::uint32_t value) { store_dword(word, 0, value); }
  /// By a wave of a kernel on the queues' GPU, through its L2, with no cache action before or after.
  virtual std::uint32_t kernel_load(std::uint32_t word) = 0;
  virtual void kernel_store(std::uint32_t word, std::uint32_t value) = 0;
  /// Dwords into the ring of a queue, after those that it has.
  virtual void put(std::uint32_t queue, std::span<const std::uint32_t>) = 0;
  virtual void ring(std::uint32_t queue) = 0;  ///< publishes all that was put
  /// A dword of the ring that may have been published already.
  virtual void patch(std::uint32_t queue, std::uint32_t dword, std::uint32_t value) = 0;
  virtual std::uint64_t rptr(std::uint32_t queue) = 0;  ///< bytes, as the host sees it
};

/// What the host does without a pause.
struct Step {
  static constexpr std::uint32_t kAnyTime = ~0u;
  std::uint32_t when_stalled = kAnyTime;  ///< this queue can do no more, for now
  std::vector<std::function<void(World&)>> actions{};

  void perform(World& w) const {
    for (const auto& a : actions) a(w);
  }
};

struct Expected {
  std::string name{};
  bool strict = false, rocr = false;  ///< seen in these orderings as well; adversarial shows all
  std::vector<std::function<bool(World&)>> conditions{};
};

/// Parts of the model that a program is about: leaving others out keeps the search small. Seeded runs have all.
struct Parts {
  bool prefetch = false, late_rptr = false, holding_polls = false, split_stores = false;
  std::uint32_t pieces = 1;
};

struct Program {
  std::string rule{}, name{}, question{};
  std::vector<std::uint32_t> engines{};                        ///< of each queue
  std::vector<std::pair<std::string, std::uint32_t>> words{};  ///< the name of each, and its number in a World
  std::vector<Step> steps{1};                                  ///< the first comes before anything else
  std::vector<Expected> outcomes{};
  /// After the outcome, 1 is stored to this word, so that no poll waits for ever.
  std::optional<std::uint32_t> release{};
  Parts parts{};
  bool vram = false;    ///< it uses words from World::kVram on: only for a device that maps VRAM for the host
  bool kernel = false;  ///< it needs a compute kernel: only for the software engine

  /// The first whose conditions hold; if there is none, what all words hold, which `find` does not know.
  std::string outcome(World&) const;
  const Expected* find(std::string_view outcome) const;
};

/// `file`: the name of the text in errors.
Result<Program, std::vector<Diagnostic>> read_program(std::string_view text, std::string_view file);
/// Those of share/sdma/litmus, in the order of docs/litmus.md.
std::vector<Program> shipped_programs();

}  // namespace sdma::litmus
