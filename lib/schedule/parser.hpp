#pragma once
// Parses the text of a schedule in two passes: declarations first, then bodies. Internal.
//
//   ScheduleParser p{source, options};
//   p.run();                         // if source.count() == 0, p.schedule() is the result
//
// A name may be used before the line that declares it, and that line may be in a loop. So the first pass evaluates
// loops and declarations, and skips the bodies of queues and hosts. The second pass evaluates loops again, skips
// declarations, and reads bodies, aliases and expectations; all names are known by then. Queues and hosts come in the
// same order in both.
#include "../stream/packet_line.hpp"
#include "sdma/schedule/text.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

class ScheduleParser final : private Symbols {
 public:
  ScheduleParser(Source& source, const ParseOptions& options);
  void run();
  Schedule& schedule() noexcept { return s_; }

 private:
  enum class Pass { declare, define };
  enum class Block { file, queue, host };
  static constexpr int kDeepest = 32;
  static constexpr std::uint32_t kMostGpus = 64;

  /// What a name refers to.
  struct Symbol {
    enum class Kind { buffer, signal, queue };
    Kind kind{};
    std::size_t index{};
    std::size_t at{};  ///< where it is declared
  };
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
    bool signal{};
    std::size_t index{};
    std::optional<Ref> ref{};
    Number offset{};  ///< or the address, if there is no ref
    std::size_t at{};
    std::string context{};
  };
  enum class Field { taken, unknown, failed };

  // parser.cpp: blocks, loops, and names of numbers
  void pass(Pass);
  bool version();
  void block(Block, int depth);
  bool statement(Block, int depth);
  bool not_here(const Token&, Block);
  bool let(bool param);
  bool loop(Block, int depth);
  void rounds(const std::string& variable, Number first, Number last, Block, int depth, const Token& begin);
  void close(const Token& begin);
  void skip_body(Block);
  std::optional<std::string> new_name();
  std::optional<Number> setting(std::string_view name);
  void unused_settings();

  // declare.cpp: declarations and expectations
  bool item(int depth);
  bool gpus();
  bool buffer();
  bool signal();
  bool queue();
  bool expect();
  bool expectation(const Ref& left);
  bool add_expectation(const Schedule::Range& left, const Schedule::Range& right, bool old, std::size_t at);
  template <class Fn> bool fields(std::string_view what, std::string_view names, std::string_view required, Fn);
  template <class Fn> bool each_gpu(const Ref&, Fn);
  bool declare(const Ref&, Symbol::Kind, std::size_t index);
  bool alias(Alias&);
  void resolve_aliases();
  void resolve(const Alias&);

  // body.cpp: bodies of queues and hosts
  bool packet();
  bool check_packet(const PacketView&, std::size_t at);
  void check_boundaries(const Token& begin);
  bool host();
  bool action(int depth);
  bool submit();
  bool set_or_wait(bool wait);
  bool repeat(int depth);
  std::optional<Compare> comparison();

  // refs.cpp: names with their places
  std::optional<Place> place(bool* all);
  std::optional<Ref> ref(bool all_allowed);
  const Symbol* find(std::string_view ref, std::size_t at);
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
  std::optional<std::uint64_t> number(std::string_view what, Number least, Number most);
  std::optional<EpochValue> word_value(GpuVa signal, bool epoch);
  bool in_schedule(Place, std::size_t at);
  std::string declared(const Symbol&) const;
  const Symbol* symbol_of(const SymbolOffset&) const;
  std::optional<std::uint64_t> address(std::string_view ref, Number offset, std::size_t at, Source&) override;
  void epoch(const FieldInfo& f, Linear v) override { line_epochs_.push_back({&f, v}); }

  // map.cpp: locations. Until the end, a location's line is an offset in the text: lines are counted once
  SourceMap::Location location(std::size_t at);
  void finish_map();

  // used by all of them
  bool at_line_end() const noexcept { return lex_.peek().kind == Token::line || lex_.peek().kind == Token::end; }
  bool at(std::string_view word) const noexcept { return lex_.peek().kind == Token::word && lex_.peek().text == word; }
  bool fail(std::size_t at, std::string message, std::string hint = "") {
    source_.error(at, std::move(message), std::move(hint));
    return false;
  }
  bool take(std::string_view symbol);
  /// Is there room for one more declaration, action or expectation?
  bool room(std::size_t at);

  Source& source_;
  const ParseOptions& options_;
  Schedule s_;
  Pass pass_ = Pass::declare;
  bool incomplete_ = false;  // the first pass may have missed declarations, so an unknown name is not an error
  bool broken_ = false;      // a block has ended without its `end`, which has been reported
  Names names_;
  Lexer lex_;
  PacketLines lines_;
  std::map<std::string, Symbol, std::less<>> symbols_;
  std::vector<Alias> aliases_;
  std::vector<bool> setting_used_;
  std::vector<std::string> params_;
  std::string context_;
  std::uint32_t rounds_ = 0;
  std::size_t items_ = 0, dwords_ = 0, next_queue_ = 0, gpus_at_ = 0, block_at_ = 0;
  bool gpus_given_ = false;

  SourceMap map_;

  // The open block.
  Schedule::Queue* queue_ = nullptr;
  std::vector<Schedule::Action>* actions_ = nullptr;
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

}  // namespace detail
}  // namespace v0
}  // namespace sdma
