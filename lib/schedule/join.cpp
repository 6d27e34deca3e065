// SPDX-License-Identifier: MIT
#include "join.hpp"

#include "sdma/schedule/exchange.hpp"
#include "sdma/schedule/text.hpp"
#include "symbols.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::uint64_t kLine = 64;

/// Memory that one rank allocates, and the symbols in it.
struct Piece {
  std::uint32_t rank{};
  std::string what{};
  MemoryRequest request{};
  std::vector<SymbolOffset> symbols{};  ///< `offset`: where the symbol begins in the piece
};

/// What a rank publishes: this, and the handles of its pieces.
struct Greeting {
  std::uint64_t schedule{};  ///< the same for the same text
  std::uint32_t rank{}, ranks{};
  std::uint64_t nodes{};    ///< the same for the same sizes
  std::uint32_t process{};  ///< not compared, as `run`
  std::uint64_t handles{};
  std::uint64_t run{};  ///< that of rank 0 is the number of this run
};

std::uint64_t digest(const std::string& text) noexcept {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

class Joiner {
 public:
  Joiner(Bound::Impl& out, const BindOptions& o, const std::vector<GpuId>& gpus)
      : out_(out), s_(out.schedule), options_(o), gpus_(gpus), end_(Deadline::in(o.exchange_limit)) {}

  std::vector<Diagnostic> run() {
    Ranks ranks{s_, options_.ranks, options_.ranks_per_node};
    if (nodes() > 1) divide(ranks);
    if (!errors_.empty()) return std::move(errors_);
    out_.team.emplace(std::move(ranks), options_.rank, out_.device, options_.exchange->conductor());
    list();
    memory_.resize(pieces_.size());
    greetings_.resize(options_.ranks);
    publish();
    if (errors_.empty()) place(options_.rank);  // the words with which this rank says that it gives up
    for (std::uint32_t r = 0; r < options_.ranks && errors_.empty(); ++r)
      if (r != options_.rank) receive(r);
    if (errors_.empty() && nodes() > 1) connect();
    for (std::size_t i = 0; i < pieces_.size() && errors_.empty(); ++i) place(i);
    if (!errors_.empty()) {
      out_.team->stop();
      out_.network.reset();  // its thread uses the words
      out_.team.reset();     // which go with memory_
      return std::move(errors_);
    }
    std::optional<LostRank> lost;
    if (!out_.team->barrier(end_, [&] { return (lost = out_.team->lost()).has_value(); }))
      add("bind", lost ? to_string(*lost) : "a rank has not bound the schedule in time",
          "start all ranks at the same time");
    for (auto& m : memory_) out_.memory.push_back(std::move(m));
    return std::move(errors_);
  }

 private:
  void add(std::string where, std::string message, std::string hint) {
    errors_.push_back({.where = std::move(where), .message = std::move(message), .hint = std::move(hint)});
  }

  std::uint32_t nodes() const noexcept { return *options_.ranks_per_node.count(options_.ranks); }
  bool is_far(const Piece& p) const noexcept { return out_.team->is_far(p.rank); }

  /// Gives each node what only it uses.
  void divide(Ranks& ranks) {
    std::vector<std::uint32_t> of_gpus;
    for (std::uint32_t g = 0; g < s_.gpus; ++g) of_gpus.push_back(ranks.node(ranks.of(Place::gpu(g))));
    ranks.nodes = map_nodes(s_, of_gpus);
    for (auto& r : ranks.nodes.refusals) add(std::move(r.where), std::move(r.message), std::move(r.hint));
    const auto all = actors(s_);
    for (const auto& [a, node] : ranks.nodes.actors)
      if (all[a].rank && ranks.node(*all[a].rank) != node)
        add(all[a].title(), fmt::format("it is of rank {}, and what it uses is in node {}", *all[a].rank, node),
            fmt::format("name a rank of that node, or omit rank="));
    const auto node_of = [&](const Schedule::Range& r) { return ranks.node(ranks.of(*find_symbol(s_, r.va))); };
    for (const auto& e : s_.expectations) {
      bool two = e.kind == Schedule::Expectation::Kind::bytes && !e.sum && node_of(e.right) != node_of(e.left);
      for (const auto& p : e.sum.parts) two = two || node_of(p) != node_of(e.left);
      if (two && !e.old)
        add(to_text(s_, e), "it compares bytes of two nodes, and each sees only its own",
            "write old: each rank knows what all buffers held before the run");
    }
  }

  /// Maps what queues of the network use, and starts to receive.
  void connect() {
    std::vector<std::uint32_t> processes;
    for (const auto& g : greetings_) processes.push_back(g.process);
    out_.network =
        std::make_unique<NetworkThread>(out_, *options_.transport, greetings_.front().run, std::move(processes));
    out_.team->reach(out_.network.get());
    for (std::size_t i = 0; i < pieces_.size() && errors_.empty(); ++i)
      if (is_far(pieces_[i])) place_far(pieces_[i], memory_[i]);
      else if (!pieces_[i].symbols.empty() && out_.network->map(memory_[i]) != Errc::ok)
        add(pieces_[i].what, "the network cannot reach it", "");
    if (errors_.empty()) out_.network->start();
  }
  void place_far(const Piece& p, Memory& copy) {
    if (p.symbols.empty()) {
      auto m = out_.device.allocate({.bytes = p.request.bytes, .purpose = Purpose::words});
      if (!made(p, m)) return;
      copy = std::move(*m);
      return place(p, copy);
    }
    for (const auto& l : p.symbols) {
      out_.home(l) = {out_.network->shadow(link_address({l.signal, l.index, 0})), nullptr};
      if (l.signal) out_.words_at[l.index] = {};
    }
  }

  void list() {
    const auto& ranks = out_.team->ranks();
    for (std::uint32_t r = 0; r < options_.ranks; ++r)
      pieces_.push_back(
          {r, "words of the run", {.bytes = Team::page_bytes(s_), .purpose = Purpose::words, .shareable = true}, {}});
    std::map<std::pair<std::uint32_t, std::uint32_t>, Piece> words;  // by place, ~0 is the host, and by rank
    for (const auto& l : symbols(s_)) {
      if (at_of(s_, l)) continue;
      if (!l.signal) {
        pieces_.push_back({ranks.of(l), title(s_, l), request_for(s_.buffers[l.index], gpus_), {l}});
        pieces_.back().request.shareable = true;
        continue;
      }
      const auto p = place_of(s_, l);
      auto& piece = words[{p.is_host() ? ~0u : p.index, ranks.of(l)}];
      piece.rank = ranks.of(l);
      piece.what = "signals of " + to_string(p);
      piece.symbols.push_back({true, l.index, piece.request.bytes});
      piece.request = {.bytes = piece.request.bytes + kLine, .purpose = Purpose::words, .shareable = true};
      if (!p.is_host()) piece.request.where = gpus_[p.index];
    }
    for (auto& [place, piece] : words) pieces_.push_back(std::move(piece));
  }

  template <class T> bool made(const Piece& p, Result<T, Diagnostic>& r) {
    if (r) return true;
    r.error().where = p.what + ": " + r.error().where;
    errors_.push_back(std::move(r.error()));
    return false;
  }
  Greeting greeting(std::uint32_t rank) const {
    const auto own = [&](const Piece& p) { return p.rank == rank; };
    return {.schedule = digest(to_text(s_)),
            .rank = rank,
            .ranks = options_.ranks,
            .nodes = digest(to_string(options_.ranks_per_node)),
            .process = static_cast<std::uint32_t>(::getpid()),
            .handles = static_cast<std::uint64_t>(std::count_if(pieces_.begin(), pieces_.end(), own)),
            .run = static_cast<std::uint64_t>(Deadline::Clock::now().time_since_epoch().count())};
  }

  void publish() {
    const auto hello = greetings_[options_.rank] = greeting(options_.rank);
    std::vector<std::byte> bytes;
    const auto append = [&](const auto& v) {
      const auto* at = reinterpret_cast<const std::byte*>(&v);
      bytes.insert(bytes.end(), at, at + sizeof v);
    };
    append(hello);
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].rank != options_.rank) continue;
      auto m = out_.device.allocate(pieces_[i].request);
      if (!made(pieces_[i], m)) return;
      auto h = out_.device.share(*m);
      if (!made(pieces_[i], h)) return;
      memory_[i] = std::move(*m);
      append(*h);
    }
    if (auto e = options_.exchange->publish(bytes, end_); !e) errors_.push_back(std::move(e.error()));
  }

  void receive(std::uint32_t rank) {
    auto bytes = options_.exchange->receive(rank, end_);
    if (!bytes) return errors_.push_back(std::move(bytes.error()));
    const auto should = greeting(rank);
    Greeting is;
    if (bytes->size() >= sizeof is) std::memcpy(&is, bytes->data(), sizeof is);
    const auto where = fmt::format("rank {}", rank);
    if (is.ranks != should.ranks || is.rank != rank)
      return add(where, fmt::format("it binds as rank {} of {}", is.rank, is.ranks),
                 fmt::format("start {} ranks with the numbers from 0", should.ranks));
    if (is.nodes != should.nodes)
      return add(where, fmt::format("it does not group the ranks to the nodes that rank {} has", options_.rank),
                 "give all ranks the same numbers of ranks per node");
    if (is.schedule != should.schedule || is.handles != should.handles ||
        bytes->size() != sizeof is + is.handles * sizeof(SharedHandle))
      return add(where, "it binds another schedule", "give all ranks the same text and settings");
    greetings_[rank] = is;
    if (out_.team->is_far(rank)) return;
    const auto* at = bytes->data() + sizeof is;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].rank != rank) continue;
      SharedHandle h;
      std::memcpy(&h, at, sizeof h);
      at += sizeof h;
      auto m = out_.device.open_shared(h);
      if (!made(pieces_[i], m)) return;
      memory_[i] = std::move(*m);
    }
  }

  void place(std::size_t i) {
    if (!is_far(pieces_[i])) place(pieces_[i], memory_[i]);
  }
  void place(const Piece& p, const Memory& m) {
    const auto host = m.host();
    if (host.empty()) return add(p.what, "the host cannot access this memory, but has to fill and compare it", "");
    if (p.symbols.empty()) {
      auto first = out_.device.signal_at(m, 0);
      if (!made(p, first)) return;
      out_.team->join(p.rank, *first);
    }
    for (const auto& l : p.symbols) {
      out_.home(l) = {m.va() + l.offset, host.data() + l.offset};
      if (!l.signal) continue;
      auto word = out_.device.signal_at(m, l.offset);
      if (!made(p, word)) return;
      if (p.rank == options_.rank) word->set(s_.signals[l.index].value);
      out_.words_at[l.index] = *word;
    }
  }

  Bound::Impl& out_;
  const Schedule& s_;
  const BindOptions& options_;
  const std::vector<GpuId>& gpus_;
  const Deadline end_;
  std::vector<Piece> pieces_;
  std::vector<Memory> memory_;
  std::vector<Greeting> greetings_;  ///< of each rank
  std::vector<Diagnostic> errors_;
};

}  // namespace

std::vector<Diagnostic> wrong_ranks(const Schedule& s, const BindOptions& o) {
  std::vector<Diagnostic> all;
  const auto refused = [&](std::string message, std::string hint) {
    all.push_back({.where = "bind", .message = std::move(message), .hint = std::move(hint)});
  };
  if (o.ranks == 1) return all;
  if (o.ranks > 64) refused(fmt::format("{} ranks", o.ranks), "use at most 64");
  if (o.ranks > s.gpus) refused(fmt::format("{} ranks share {} GPUs", o.ranks, s.gpus), "use at most one rank per GPU");
  if (o.rank >= o.ranks) refused(fmt::format("rank {} of {}", o.rank, o.ranks), "number the ranks from 0");
  if (!o.exchange) refused("the ranks have no way to exchange handles", "set BindOptions::exchange");
  if (!o.external.empty()) refused("memory at a fixed address belongs to one process", "omit at=");
  const auto nodes = o.ranks_per_node.count(o.ranks);
  if (!nodes)
    refused(fmt::format("{} ranks are not whole nodes of {}", o.ranks, to_string(o.ranks_per_node)),
            "let the ranks of the nodes add up to all ranks");
  else if (*nodes > 1 && !o.transport)
    refused("the nodes have no way to pass each other bytes", "set BindOptions::transport");
  for (const auto& h : s.hosts)
    if (h.rank && *h.rank >= o.ranks)
      all.push_back({.where = "host " + h.name,
                     .message = fmt::format("it is of rank {}, and there are {}", *h.rank, o.ranks),
                     .hint = "run with more ranks, or omit rank="});
  return all;
}

MemoryRequest request_for(const Schedule::Buffer& b, const std::vector<GpuId>& gpus) {
  MemoryRequest r{.bytes = b.bytes, .alignment = std::max<std::uint64_t>(4096, b.alignment)};
  if (!b.place.is_host()) r.where = gpus[b.place.index];
  if (!b.map.empty()) r.gpus = 0;
  for (const auto p : b.map)
    if (!p.is_host()) r.gpus |= std::uint64_t{1} << gpus[p.index].value;
  return r;
}

std::vector<Diagnostic> join(Bound::Impl& out, const BindOptions& o, const std::vector<GpuId>& gpus) {
  return Joiner{out, o, gpus}.run();
}

}}}  // namespace sdma::v0_3::detail
