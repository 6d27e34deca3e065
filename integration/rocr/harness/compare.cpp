// SPDX-License-Identifier: MIT
// Sends the same random commands through the original blits and
// through the patched ones, and compares the dwords in their rings.
//
//   compare ISA PACKETS [SEED]         compare gfx942 1000000
//
// Prints one line: ISA, steps, packets, dwords, packets of each kind. Ends with 1 at the first difference,
// which it shows. What may differ: how the end of the ring is filled, and that a command may end exactly there.
// Both must be NOPs.
#include "rig.hpp"

#include "sdma/packets/registry.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>

namespace {

struct Isa {
  const char* name;
  int version[3];
  std::size_t longest_copy;  ///< what ROCr passes for it
};
constexpr Isa kIsas[] = {
    {"gfx900", {9, 0, 0}, 0x3fffff},     {"gfx908", {9, 0, 8}, 0x3fffff},     {"gfx90a", {9, 0, 10}, 0x3fffffff},
    {"gfx942", {9, 4, 2}, 0x3fffff},     {"gfx1010", {10, 1, 0}, 0x3fffff},   {"gfx1030", {10, 3, 0}, 0x3fffffff},
    {"gfx1100", {11, 0, 0}, 0x3fffffff}, {"gfx1200", {12, 0, 0}, 0x3fffffff},
};

using Random = std::mt19937_64;
std::uint64_t below(Random& r, std::uint64_t n) { return r() % n; }
/// As often small as large.
std::uint64_t spread(Random& r, unsigned bits) { return 1 + (r() >> (64 - 1 - below(r, bits))); }
void* address(Random& r, std::uint64_t align) { return reinterpret_cast<void*>((r() >> 16) / align * align); }

/// A ring, its blit object, and what the last command wrote.
struct Side {
  Side(std::unique_ptr<rig::Blit> (*make)(rig::State&), const Isa& isa, rig::SignalMemory* internals, int form) {
    std::copy(std::begin(isa.version), std::end(isa.version), state.isa);
    state.longest_copy = (form & 4) != 0 ? 0 : isa.longest_copy;
    state.atomics = (form & 1) != 0;
    state.xgmi = (form & 2) != 0;
    state.ring = static_cast<char*>(
        ::mmap(nullptr, rig::kRingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    state.internals = internals;
    blit = make(state);
  }
  std::span<const std::uint32_t> between(std::uint64_t from, std::uint64_t to) const {
    return {reinterpret_cast<const std::uint32_t*>(state.ring) + from % rig::kRingBytes / 4, (to - from) / 4};
  }
  /// The command, without the NOPs that fill the end of the ring before it. The engine then catches up.
  std::span<const std::uint32_t> take() {
    const auto from = taken, to = state.wptr;
    taken = to;
    const auto wrap = (to - 1) / rig::kRingBytes * rig::kRingBytes;
    const auto begin = to != from && wrap > from ? wrap : from;
    if (begin != from) {
      ++wraps;
      // A command of more than half the ring may lie on them, once the engine has read them.
      for (auto d = between(from, to - from <= rig::kRingBytes ? begin : from); !d.empty();) {
        const auto* p = sdma::identify(d);
        if (!p || p->name != "nop" || p->length(d.data()) > d.size())
          std::printf("the end of a ring does not hold NOPs\n"), std::exit(1);
        d = d.subspan(p->length(d.data()));
      }
    }
    state.rptr = to;
    if (state.doorbell != to) std::printf("the doorbell is not wptr\n"), std::exit(1);
    return between(begin, to);
  }
  rig::State state;
  std::unique_ptr<rig::Blit> blit;
  std::uint64_t taken = 0, wraps = 0;
};

/// Lets the engine of a side run while a command is sent that may need more than the ring has left.
class Running {
 public:
  explicit Running(Side& s)
      : engine_([this, &s] {
          while (!over_)
            __atomic_store_n(&s.state.rptr, __atomic_load_n(&s.state.wptr, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
        }) {}
  ~Running() {
    over_ = true;
    engine_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread engine_;
};

struct Count {
  std::uint64_t steps = 0, packets = 0, dwords = 0, refused = 0;
  std::map<std::string, std::uint64_t> kinds;
  void add(std::span<const std::uint32_t> d) {
    ++steps;
    dwords += d.size();
    while (!d.empty()) {
      const auto* p = sdma::identify(d);
      // The cache control of gfx10 and later is the only packet that the description lacks.
      const std::size_t n = p ? p->length(d.data()) : std::min<std::size_t>(5, d.size());
      ++kinds[p ? std::string(p->name) : "gcr"];
      ++packets;
      d = d.subspan(std::min(n, d.size()));
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "gfx942";
  const std::uint64_t wanted = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1'000'000;
  const auto isa = std::find_if(std::begin(kIsas), std::end(kIsas), [&](const Isa& i) { return name == i.name; });
  if (isa == std::end(kIsas)) return std::printf("unknown ISA %s\n", name.c_str()), 2;
  Random random(argc > 3 ? std::strtoull(argv[3], nullptr, 0) : 1);

  auto* const signals = new rig::SignalMemory[64];
  std::vector<std::pair<Side, Side>> forms;
  forms.reserve(8);
  for (int form = 0; form != 8; ++form)
    forms.emplace_back(std::piecewise_construct, std::forward_as_tuple(&rig::theirs, *isa, signals + 62, form),
                       std::forward_as_tuple(&rig::ours, *isa, signals + 62, form));

  Count count;
  std::size_t longest = 0;  ///< command, in dwords
  for (std::uint64_t step = 0; count.packets < wanted; ++step) {
    auto& [a, b] = forms[below(random, forms.size())];
    rig::Blit::Signals deps, gang;
    for (auto n = below(random, 6); n-- != 0;) {
      auto* s = &signals[1 + below(random, 30)];
      s->value = below(random, 3) == 0 ? 0 : below(random, 3) == 0 ? static_cast<std::int64_t>(random()) : 1;
      deps.push_back(s);
    }
    for (auto n = below(random, 8); n-- != 0;) gang.push_back(&signals[32 + below(random, 28)]);
    auto& out = signals[0];
    out.value = below(random, 4) == 0 ? static_cast<std::int64_t>(random()) : 1;
    out.mailbox = below(random, 2) == 0 ? 0 : reinterpret_cast<std::uint64_t>(address(random, 8));
    out.event = static_cast<std::uint32_t>(below(random, 4096));
    for (auto* s : {&signals[62], &signals[63]}) s->mailbox = out.mailbox, s->event = out.event;
    a.state.profiling = b.state.profiling = below(random, 2) == 0;
    const bool leads = below(random, 4) == 0;
    const auto largest = below(random, 50) == 0 ? 35u : 24u;
    auto* const dst = address(random, 1);
    auto* const src = address(random, 1);
    auto bytes = spread(random, largest);
    const auto kind = below(random, 8);
    rig::Box box{};
    if (kind < 2) {
      const auto align = std::uint64_t{4} << below(random, 4);
      const auto side = [&] {
        // Some are larger than a packet's fields, so they are cut into tiles, or refused.
        const auto pitch = (spread(random, below(random, 8) == 0 ? 24 : 14) + align) / align * align;
        return rig::Box::Side{
            address(random, 4), pitch, pitch * spread(random, below(random, 8) == 0 ? 16 : 8), 0, 0, 0};
      };
      box.dst = side();
      box.src = side();
      const auto within = [&](std::uint64_t n, std::uint32_t& x, std::uint32_t& y) {
        const auto range = 1 + below(random, n);
        x = static_cast<std::uint32_t>(below(random, box.dst.pitch > 0 ? n - range + 1 : 1));
        y = static_cast<std::uint32_t>(below(random, n - range + 1));
        return static_cast<std::uint32_t>(range);
      };
      box.x = within(std::min(box.dst.pitch, box.src.pitch), box.dst.x, box.src.x);
      box.y = within(std::min(box.dst.slice / box.dst.pitch, box.src.slice / box.src.pitch), box.dst.y, box.src.y);
      box.z = below(random, 3) == 0 ? static_cast<std::uint32_t>(1 + below(random, 20)) : 1;
      box.dst.z = static_cast<std::uint32_t>(below(random, 10));
      box.src.z = static_cast<std::uint32_t>(below(random, 10));
    }
    // Longer than half the ring; beyond the ring, both refuse.
    const bool large = kind > 2 && below(random, 2000) == 0;
    if (large) bytes = (std::uint64_t{1} << 35) + below(random, std::uint64_t{5} << 35);
    const auto run = [&](Side& s) {
      std::optional<Running> engine;
      if (large) engine.emplace(s);
      s.blit->leads(leads);
      const auto value = out.value;
      const int status = kind < 2 ? s.blit->box(box, deps, out)
                         : kind == 2
                             ? s.blit->fill(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(dst) & ~3ull),
                                            static_cast<std::uint32_t>(bytes * 0x9e3779b9u), (bytes + 3) / 4)
                         : kind == 3 ? s.blit->copy(dst, src, bytes)
                                     : s.blit->copy(dst, src, bytes, deps, out, leads ? gang : rig::Blit::Signals{});
      out.value = value;
      return status;
    };
    const int ra = run(a), rb = run(b);
    const auto moves = ra != 0     ? 0
                       : kind < 2  ? std::uint64_t{box.x} * box.y * box.z
                       : kind == 2 ? (bytes + 3) / 4 * 4
                                   : bytes;
    // The original does not count at the end of the ring: it fills its table up to the wrapped index, which is 0 there.
    const bool counts = a.state.wptr / rig::kRingBytes == a.state.rptr / rig::kRingBytes;
    if (!large && (b.blit->pending() != moves || (counts && a.blit->pending() != moves)))
      return std::printf("%llu and %llu bytes are pending, not %llu\n",
                         static_cast<unsigned long long>(a.blit->pending()),
                         static_cast<unsigned long long>(b.blit->pending()), static_cast<unsigned long long>(moves)),
             1;
    const auto da = a.take(), db = b.take();
    if (ra != rb || !std::equal(da.begin(), da.end(), db.begin(), db.end())) {
      std::printf("%s step %llu kind %llu: status %d and %d, %zu and %zu dwords\n", isa->name,
                  static_cast<unsigned long long>(step), static_cast<unsigned long long>(kind), ra, rb, da.size(),
                  db.size());
      for (std::size_t i = 0; i < std::max(da.size(), db.size()); ++i)
        if (i >= da.size() || i >= db.size() || da[i] != db[i]) {
          std::printf("  first difference at dword %zu: %08x and %08x\n", i, i < da.size() ? da[i] : 0,
                      i < db.size() ? db[i] : 0);
          break;
        }
      return 1;
    }
    if (a.blit->pending() != 0 || b.blit->pending() != 0) return std::printf("bytes are pending in an idle queue\n"), 1;
    if (da.empty()) ++count.refused;
    else count.add(da);
    longest = std::max(longest, da.size());
  }
  std::uint64_t wraps = 0;
  for (const auto& [a, b] : forms) wraps += b.wraps;
  std::printf(
      "%-8s %8llu steps %9llu packets %10llu dwords  0 differ;  %llu wraps, %llu refused by both, the longest %zu "
      "dwords;",
      isa->name, static_cast<unsigned long long>(count.steps), static_cast<unsigned long long>(count.packets),
      static_cast<unsigned long long>(count.dwords), static_cast<unsigned long long>(wraps),
      static_cast<unsigned long long>(count.refused), longest);
  for (const auto& [kind, n] : count.kinds) std::printf(" %s %llu", kind.c_str(), static_cast<unsigned long long>(n));
  std::printf("\n");
}
