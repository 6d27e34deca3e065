// SPDX-License-Identifier: MIT
#pragma once
// Random programs of queues and host threads, and what they do: an interpreter that shares no code with the engine.
//
//   Program p = random_program(seed);
//   State s{p};
//   while (s.step(random)) {}                  // until neither a queue nor a host thread can continue
//   s.blocked(0)                               // queue 0 waits for a word
//   diagnose(snapshot_of(p, s, ...))
//
//   op          what it does
//   fence       stores a dword                    condition  skips the next `count` ops unless a dword has a value
//   poll        waits for a dword                 buffer     executes `inner`, which an INDIRECT calls
//   add         adds to 64 bits                   copy, nop  nothing that matters here
//   repeat      an atomic that waits until 64 bits have a value, and replaces it
//
// Words are neighbours in memory: dwords 2n and 2n+1 are the halves of a 64-bit word. Queues post to the first words,
// host threads to the others; a queue only sets those back after it has waited for them. A host thread that pauses (it
// reads from a disk, say) continues only after resume().
#include "sdma/doctor/diagnose.hpp"
#include "sdma/packets/registry.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace sdma::test {

struct Op {
  enum class Kind : std::uint8_t { fence, poll, add, repeat, condition, buffer, copy, nop };
  Kind kind = Kind::nop;
  std::uint32_t word{}, value{}, mask = ~0u, count{};
  Compare func = Compare::eq;
  std::vector<Op> inner{};
};

/// What a host thread does.
struct HostOp {
  enum class Kind : std::uint8_t { store, wait, pause };
  Kind kind{};
  std::uint32_t word{}, value{};
};

inline constexpr std::uint32_t kQueueWords = 6, kAllWords = 10;

struct Program {
  std::vector<std::vector<Op>> queues{};
  std::vector<std::vector<HostOp>> hosts{};
  std::vector<std::uint32_t> initial = std::vector<std::uint32_t>(kAllWords);
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}
  Program take() {
    Program p;
    for (auto n = 1 + below(4); n > 0; --n) p.queues.push_back(stream(1 + below(7), true));
    for (auto n = below(3); n > 0; --n) {
      auto& h = p.hosts.emplace_back();
      for (auto ops = 1 + below(3); ops > 0; --ops) h.push_back(host_op());
    }
    if (below(3) == 0) p.initial[below(kAllWords)] = below(3);
    return p;
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::uint32_t pair() { return 2 * below(kQueueWords / 2); }
  Op poll(std::uint32_t word) {
    constexpr Compare kFuncs[] = {Compare::eq, Compare::ge, Compare::eq, Compare::ge, Compare::ne, Compare::lt};
    return {.kind = Op::Kind::poll,
            .word = word,
            .value = 1 + below(2),
            .mask = below(16) == 0 ? 1u : ~0u,
            .func = kFuncs[below(6)]};
  }
  std::vector<Op> stream(std::uint32_t n, bool buffers) {
    std::vector<Op> out;
    while (out.size() < n) {
      switch (below(12)) {
        case 0:
        case 1:
        case 2: out.push_back({.kind = Op::Kind::fence, .word = below(kQueueWords), .value = below(3)}); break;
        case 3:
        case 4: out.push_back(poll(below(kQueueWords))); break;
        case 5: {
          const auto word = kQueueWords + below(kAllWords - kQueueWords);
          out.push_back(poll(word));
          out.back().func = below(2) ? Compare::eq : Compare::ge;
          if (below(2)) out.push_back({.kind = Op::Kind::fence, .word = word, .value = 0});
          break;
        }
        case 6: out.push_back({.kind = Op::Kind::add, .word = pair(), .value = 1}); break;
        case 7: out.push_back({.kind = Op::Kind::repeat, .word = pair(), .value = below(3), .count = below(3)}); break;
        case 8:
          out.push_back(
              {.kind = Op::Kind::condition, .word = below(kAllWords), .value = below(2), .count = 1 + below(2)});
          break;
        case 9:
          if (buffers) out.push_back({.kind = Op::Kind::buffer, .inner = stream(1 + below(3), false)});
          break;
        case 10: out.push_back({.kind = Op::Kind::copy}); break;
        default: out.push_back({.kind = Op::Kind::nop}); break;
      }
    }
    return out;
  }
  HostOp host_op() {
    const auto host = kQueueWords + below(kAllWords - kQueueWords);
    switch (below(4)) {
      case 0: return {HostOp::Kind::pause};
      case 1: return {HostOp::Kind::wait, below(kQueueWords), 1 + below(2)};
      default: return {HostOp::Kind::store, host, 1 + below(2)};
    }
  }

  std::mt19937_64 random_;
};

/// Where a queue or a host thread is.
struct Counter {
  std::size_t op{}, inner{};
  friend bool operator==(const Counter&, const Counter&) = default;
};

class State {
 public:
  explicit State(const Program& p) : program(p), words(p.initial), at(p.queues.size()), hosts(p.hosts.size()) {}

  const Op* next(std::size_t q) const {
    const auto& ops = program.queues[q];
    if (at[q].op >= ops.size()) return nullptr;
    const auto& op = ops[at[q].op];
    return op.kind == Op::Kind::buffer ? &op.inner[at[q].inner] : &op;
  }
  bool ended(std::size_t q) const { return next(q) == nullptr; }
  /// It waits for a word that does not have its value.
  bool blocked(std::size_t q) const { return !ended(q) && !may_pass(*next(q)); }
  bool host_ended(std::size_t h) const { return hosts[h].op >= program.hosts[h].size(); }
  bool host_blocked(std::size_t h) const {
    if (host_ended(h)) return false;
    const auto& op = program.hosts[h][hosts[h].op];
    return op.kind == HostOp::Kind::pause ? !resumed : op.kind == HostOp::Kind::wait && words[op.word] < op.value;
  }
  bool paused(std::size_t h) const {
    return !host_ended(h) && !resumed && program.hosts[h][hosts[h].op].kind == HostOp::Kind::pause;
  }
  bool may_pass(const Op& op) const {
    if (op.kind == Op::Kind::repeat) return wide(op.word) == op.count;
    return op.kind != Op::Kind::poll || holds(words[op.word] & op.mask, op.func, op.value);
  }

  /// Some queue or host thread continues by one op. False: none can.
  bool step(std::mt19937_64& random) {
    std::vector<std::size_t> ready;
    for (std::size_t q = 0; q < at.size(); ++q)
      if (!ended(q) && !blocked(q)) ready.push_back(q);
    for (std::size_t h = 0; h < hosts.size(); ++h)
      if (!host_ended(h) && !host_blocked(h)) ready.push_back(at.size() + h);
    if (ready.empty()) return false;
    const auto who = ready[random() % ready.size()];
    if (who < at.size()) pass(who);
    else host(who - at.size());
    return true;
  }
  /// The queue executes its next op, whether it waits or not.
  void pass(std::size_t q) {
    const auto& ops = program.queues[q];
    const auto& op = *next(q);
    std::size_t skipped = 0;
    switch (op.kind) {
      case Op::Kind::fence: post(q, op, words[op.word], op.value); break;
      case Op::Kind::add:
        set_wide(q, op, wide(op.word) + static_cast<std::uint64_t>(static_cast<std::int32_t>(op.value)));
        break;
      case Op::Kind::repeat: set_wide(q, op, op.value); break;
      case Op::Kind::condition: skipped = words[op.word] == op.value ? 0 : op.count; break;
      default: break;
    }
    if (ops[at[q].op].kind == Op::Kind::buffer) {
      at[q].inner += 1 + skipped;
      if (at[q].inner < ops[at[q].op].inner.size()) return;
      skipped = 0;
    }
    at[q] = {at[q].op + 1 + skipped, 0};
  }
  /// The queue leaves out its next op.
  void leave_out(std::size_t q) {
    const auto& ops = program.queues[q];
    if (ops[at[q].op].kind != Op::Kind::buffer || ++at[q].inner >= ops[at[q].op].inner.size())
      at[q] = {at[q].op + 1, 0};
  }
  void resume() { resumed = true; }

  const Program& program;
  std::vector<std::uint32_t> words;
  std::vector<Counter> at, hosts;
  /// Which words each queue has stored to.
  std::map<std::uint32_t, std::vector<std::size_t>> posted{};
  bool resumed = false;

  /// This comparison is the test's own.
  static bool holds(std::uint32_t a, Compare f, std::uint32_t b) {
    switch (f) {
      case Compare::always: return true;
      case Compare::lt: return a < b;
      case Compare::le: return a <= b;
      case Compare::eq: return a == b;
      case Compare::ne: return a != b;
      case Compare::ge: return a >= b;
      case Compare::gt: return a > b;
      default: return false;
    }
  }

 private:
  std::uint64_t wide(std::uint32_t word) const { return std::uint64_t{words[word + 1]} << 32 | words[word]; }
  void post(std::size_t q, const Op& op, std::uint32_t& to, std::uint32_t value) {
    to = value;
    posted[op.word].push_back(q);
  }
  void set_wide(std::size_t q, const Op& op, std::uint64_t value) {
    post(q, op, words[op.word], static_cast<std::uint32_t>(value));
    words[op.word + 1] = static_cast<std::uint32_t>(value >> 32);
    posted[op.word + 1].push_back(q);
  }
  void host(std::size_t h) {
    const auto& op = program.hosts[h][hosts[h].op];
    if (op.kind == HostOp::Kind::store) words[op.word] = op.value;
    ++hosts[h].op;
  }
};

}  // namespace sdma::test
