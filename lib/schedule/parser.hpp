// SPDX-License-Identifier: MIT
#pragma once
// Parses the text of a schedule in two passes: declarations first, then bodies. Internal.
//
//   ScheduleParser p{lex, names, source, options};
//   p.run();                         // source.count() == 0: p.schedule() is it
//
// A name may be used before the line that declares it, and that line may be in a loop. So the first pass
// evaluates loops and declarations and skips the bodies of queues and hosts; the second evaluates loops again,
// skips declarations, and reads bodies, aliases and expectations with all names known. Queues and hosts come in
// the same order in both.
//
// Most texts declare names before they use them. So one pass does both first, and its errors only say that two are
// needed: a name that comes later, a declaration after `submit *`, an alias, or what is really wrong.
#include "../core/words.hpp"
#include "../stream/blocks.hpp"
#include "../stream/packet_line.hpp"
#include "sdma/schedule/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Does a line with this first word begin a block, which an `end` ends?
bool opens_block(std::string_view word) noexcept;

class ScheduleParser final : private Blocks, private Symbols {
 public:
  ScheduleParser(Lexer&, Names&, Source&, const ParseOptions&);
  /// `once`: in one pass. If there is an error then, run another parser in two.
  void run(bool once = false);
  Schedule& schedule() noexcept { return s_; }

 private:
  enum class Pass { declare, define, both };

  /// What a name refers to.
  struct Symbol {
    enum class Kind { buffer, signal, queue };
    Kind kind{};
    std::size_t index{};
    std::size_t at{};  ///< where it is declared
    /// Requires that it is not a queue.
    SymbolOffset offset() const noexcept { return {kind == Kind::signal, index, 0}; }
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const noexcept { return std::hash<std::string_view>{}(s); }
  };
  using SymbolTable = std::unordered_map<std::string, Symbol, Hash, std::equal_to<>>;
  struct Ref {
    bool all_gpus{};
    Place place{};
    std::string name{};
    std::size_t at{};
    std::string text() const { return to_string(place) + "." + name; }
    Ref on(std::uint32_t gpu) const { return {false, Place::gpu(gpu), name, at}; }
  };

  /// `at=` of a buffer or a signal: looked up when all names are known.
  struct Alias {
    SymbolOffset symbol{};
    std::optional<Ref> ref{};
    Number offset{};  ///< or the address, if there is no ref
    std::size_t at{};
    std::string context{};
  };

  // parser.cpp: blocks, and names of numbers
  void pass(Pass);
  bool version();
  bool statement(int depth) override;
  bool opens(const Token&) const noexcept override;
  bool misplaced(const Token&) const noexcept override;
  void body(const Token& begin);
  void skip_inner(const Token& begin);
  bool param();
  bool word_of(Names::Entry&, const Token& value, std::vector<Names::Entry>& words);
  bool setting(Names::Entry&, std::span<const Names::Entry> words);
  void unused_settings();
  /// Is there room for `n` more declarations, actions and expectations?
  bool room(std::size_t at, std::size_t n = 1);
  /// Notes whether a declaration may be missing because of an error. Returns false.
  bool failed(bool incomplete) noexcept {
    incomplete_ = incomplete_ || incomplete;
    return false;
  }

  // choose.cpp: what the text leaves open
  bool choose(int depth);
  std::optional<Values> ordered(const std::string& variable, const Values&) override;
  /// How often a choice is made: in each iteration, `once`, or `per` value. The text after its name in its id.
  struct Scope {
    std::size_t at{};     ///< of its statement
    std::string where{};  ///< " [k=3]"
    bool shared{};
  };
  std::optional<Scope> scope(std::size_t at);
  /// Which alternative to take, for the part of an order with this number.
  std::optional<std::size_t> decide(const Scope&, const std::string& name, const std::vector<Number>&, std::size_t part,
                                    bool order);

  // declare.cpp: declarations and expectations
  bool item(int depth);
  bool gpus();
  bool buffer();
  bool signal();
  bool queue();
  bool packets(const Token& begin);
  bool expect();
  bool expectation(const Ref& left);
  bool add_expectation(const Schedule::Range& left, const Schedule::Range& right, bool old, std::size_t at);
  template <class Fn> bool fields(std::string_view what, std::string_view names, std::string_view required, Fn);
  template <class Fn> bool each_gpu(const Ref&, Fn);
  template <class T>
  bool declare(const Ref&, Symbol::Kind, std::vector<T>&, std::vector<SourceMap::Location>&, const T&,
               const std::optional<Alias>&);
  bool declare(const Ref&, Symbol::Kind, std::size_t index);
  std::optional<std::uint64_t> power_of_two(std::string_view what, std::uint64_t least, std::uint64_t most);
  bool alias(Alias&);
  void resolve_aliases();
  void resolve(const Alias&);

  // body.cpp: bodies of queues
  bool packet();
  bool check_packet(const PacketView&, std::size_t at);
  void check_boundaries(const Token& begin);

  // actions.cpp: bodies of hosts and kernels
  bool host();
  bool kernel();
  bool protocol(Schedule::Protocol&);
  bool actor(const Token& begin, std::vector<Schedule::Action>&, std::vector<std::vector<SourceMap::Location>>&,
             bool ok);
  bool action(int depth);
  bool submit();
  bool submit_several(const Ref&, Schedule::Action&);
  bool wait_rptr(const Ref&);
  bool set_wait_or_add(Schedule::Action::Kind);
  bool add_action(Schedule::Action, GpuVa signal);
  bool each_signal(const Ref&, const Token& begin, const Schedule::Action&);
  bool sample();
  bool scope(Schedule::Action&);
  bool compute();
  bool load_or_store(bool store);
  bool lifetime(Schedule::Action::Kind);
  bool expect_now();
  bool repeat(int depth);
  std::optional<Compare> comparison();

  // sums.cpp: what kernels add
  std::optional<Schedule::Sum> sum(std::uint64_t bytes);

  // refs.cpp: names with their places
  std::optional<Place> place(bool* all);
  std::optional<Ref> ref(bool all_allowed);
  const Symbol* find_queue(const Ref&);
  const Symbol* find_memory(std::string_view ref, std::size_t at, std::string_view what);
  const Symbol* unknown(std::string_view ref, std::size_t at, const SymbolTable&);
  std::optional<GpuVa> signal_of(const Ref&);
  /// The brackets after a ref, if there are any.
  struct Part {
    Number from{};
    std::optional<Number> to{};
    bool length{}, given{};  ///< [from..+to]; whether there are brackets
    std::size_t at{};
  };
  std::optional<Part> part();
  std::optional<Schedule::Range> range(const Ref&, const Part&);
  enum class Varies : std::uint8_t { never, by_thread, by_round };
  std::optional<ActionValue> word_value(GpuVa signal, Varies);
  std::optional<std::uint64_t> word_bits(std::size_t at, Number, std::uint32_t bits);
  bool in_schedule(Place, std::size_t at);
  std::string declared(const Symbol&) const;
  const Symbol* symbol_of(const SymbolOffset&) const;
  std::optional<Number> address(std::string_view ref, Number offset, std::size_t at) override;
  void epoch(const FieldInfo& f, Linear v) override { line_epochs_.push_back({&f, v}); }

  // map.cpp: locations. Until the end, a location's line is an offset in the text: lines are counted once
  SourceMap::Location location(std::size_t at);
  void finish_map();

  const ParseOptions& options_;
  Schedule s_;
  Pass pass_ = Pass::declare;
  bool incomplete_ = false;  // the first pass may have missed declarations, so an unknown name is not an error
  PacketLines lines_;
  SymbolTable memory_, queues_;  ///< buffers and signals, and queues: their names live apart
  std::vector<Alias> aliases_;
  std::set<std::string, std::less<>> hosts_, kernels_;
  Schedule::Sum floats_;  ///< the last sum of numbers that are not integers
  Names sampled_;         ///< what the thread has sampled so far, also in loops that have ended
  std::vector<bool> setting_used_;
  std::vector<std::string> params_;
  std::vector<Decision> decisions_;
  std::vector<std::vector<Number>> decision_values_;          ///< the alternatives of each
  std::map<std::string, std::size_t, std::less<>> decision_;  ///< id -> index in decisions_
  std::map<std::string, std::size_t, std::less<>> visits_;  ///< how often this pass has met a choice that is not shared
  Budget items_, alternatives_{1u << 20};
  std::size_t dwords_ = 0, next_queue_ = 0, gpus_at_ = 0, block_at_ = 0;
  bool complete_ = false;  ///< in one pass: an action has named all queues or signals, so no other may follow
  bool full_ = false;      ///< the declarations exceed max_items
  bool gpus_given_ = false, gpus_lost_ = false;  ///< lost: the number of GPUs has an error

  SourceMap map_;
  std::vector<std::vector<SourceMap::Location>> kernel_actions_;  ///< as map_.actions, which they join in the end

  // The open block.
  Schedule::Queue* queue_ = nullptr;
  std::vector<Schedule::Action>* actions_ = nullptr;
  std::vector<SourceMap::Location>* action_lines_ = nullptr;
  std::string_view block_;  // "queue", "host", "kernel"
  int repeats_ = 0;

  // The current packet line.
  struct LineEpoch {
    const FieldInfo* field;
    Linear value;
  };
  struct LineAddress {
    SymbolOffset symbol;
    std::size_t at;
  };
  std::vector<LineEpoch> line_epochs_;
  std::vector<LineAddress> line_addresses_;
};

/// NAME=... until the line ends. `fn(token)` reads what comes after the `=`: nullopt if there is no such field.
template <class Fn>
bool ScheduleParser::fields(std::string_view what, std::string_view names, std::string_view required, Fn fn) {
  const auto hint = [&] { return fmt::format("its fields: {}", names); };
  std::array<std::string_view, 8> given{};  // a line has fewer fields
  auto* end = given.data();
  while (!at_line_end()) {
    const Token t = lex_.take();
    if (t.kind != Token::word) return fail(t.at, "expected a field or the end of the line, got " + quote(t));
    if (!lex_.peek().is("=")) return fail(t.at, quote(t.text) + " needs a value", hint());
    if (std::find(given.data(), end, t.text) != end) return fail(t.at, "duplicate field " + quote(t.text));
    *end++ = t.text;
    lex_.take();
    const std::optional<bool> good = fn(t);
    if (!good) {
      const auto meant = field_meant(t.text, [&](std::string_view name) { return has_word(names, name); });
      return fail(t.at, fmt::format("{} has no field '{}'", what, t.text),
                  meant.empty() ? hint() : fmt::format("did you mean '{}'? {}", meant, hint()));
    }
    if (!*good) return false;
  }
  if (required.empty() || std::find(given.data(), end, required) != end) return true;
  return fail(lex_.behind(), fmt::format("{} needs '{}='", what, required), hint());
}

/// The ref itself, or, for gpu*, one per GPU.
template <class Fn> bool ScheduleParser::each_gpu(const Ref& r, Fn fn) {
  if (!r.all_gpus) return fn(r);
  bool ok = true;
  for (std::uint32_t g = 0; g < s_.gpus && ok; ++g) ok = fn(r.on(g));
  return ok;
}

}}}  // namespace sdma::v0_3::detail
