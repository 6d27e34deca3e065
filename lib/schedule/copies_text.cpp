// SPDX-License-Identifier: MIT
// Writes recorded copies as a schedule: buffers, a queue for each stream and engine, and what waits for what.
#include "sdma/core/number.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/schedule/copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace sdma { inline namespace v0 {
namespace {

class CopiesText {
 public:
  explicit CopiesText(const RecordedCopies& c) : c_(c) {}

  std::string run() {
    for (const auto& c : c_.copies)
      if (c.after) awaited_.insert(*c.after);
    find_buffers();
    find_queues();
    head();
    for (const auto& b : buffers_)
      add("buffer {}.{} bytes={} init=random{}\n", to_string(b.place), b.name, b.size, b.comment);
    for (const auto i : awaited_) add("signal host.copy{} value=0 bits=32\n", i);
    out_ += "signal host.done value=0\n";
    for (const auto& q : queues_) queue(q);
    out_ += "host main\n  submit *\n  wait host.done == queues\nend\n";
    expectations();
    return std::move(out_);
  }

 private:
  template <class... A> void add(fmt::format_string<const A&...> f, const A&... a) {
    fmt::format_to(std::back_inserter(out_), f, a...);
  }

  void head() {
    add("sdma 1\n# {} copies of {}, which is {}. What it does not say:\n", c_.copies.size(), c_.file, c_.form);
    for (const auto& u : c_.unknown) add("#   {}\n", u);
    out_ += "# Everything is submitted at once: when each copy began is in its comment.\n";
    if (std::any_of(c_.copies.begin(), c_.copies.end(), [](const auto& c) { return c.bytes == 0; }))
      out_ += "param bytes = 1M\n";
    add("gpus {}", c_.gpus.size());
    for (std::size_t g = 0; g < c_.gpus.size(); ++g) add("{} gpu{} is {}", g == 0 ? "  #" : ",", g, c_.gpus[g]);
    out_ += "\n";
  }

  struct Buffer {
    Place place{};
    std::string name{}, size{}, comment{};
    std::uint64_t begin{}, end{};  ///< addresses
  };
  /// Where the bytes of a copy are: "gpu0.b2[64K]".
  struct Side {
    std::size_t buffer{};
    std::uint64_t offset{};
  };

  void find_buffers() {
    sides_.resize(c_.copies.size());
    using Range = std::pair<std::uint64_t, std::uint64_t>;
    std::map<std::uint64_t, std::vector<Range>> known;  // by place; the host is the last one
    const auto key = [](Place p) { return p.is_host() ? ~std::uint64_t{0} : p.index; };
    for (const auto& c : c_.copies) {
      if (c.source) known[key(c.from)].emplace_back(*c.source, *c.source + c.bytes);
      if (c.destination) known[key(c.to)].emplace_back(*c.destination, *c.destination + c.bytes);
    }
    for (auto& [place, ranges] : known) {
      std::sort(ranges.begin(), ranges.end());
      const auto first = buffers_.size();
      for (const auto& [begin, end] : ranges) {
        if (buffers_.size() > first && begin <= buffers_.back().end) {
          buffers_.back().end = std::max(buffers_.back().end, end);
          continue;
        }
        buffers_.push_back(
            {.place = place == ~std::uint64_t{0} ? Place::host() : Place::gpu(static_cast<std::uint32_t>(place)),
             .name = fmt::format("b{}", buffers_.size()),
             .begin = begin,
             .end = end});
      }
    }
    for (auto& b : buffers_) {
      b.size = size_text(b.end - b.begin);
      b.comment = fmt::format("  # {:#x}", b.begin);
    }
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> at;
    for (std::size_t b = 0; b < buffers_.size(); ++b)
      at.emplace(std::pair(key(buffers_[b].place), buffers_[b].begin), b);
    const auto side = [&](std::size_t i, Place place, std::optional<std::uint64_t> address, const char* name) -> Side {
      if (address) {
        const auto found = std::prev(at.upper_bound({key(place), *address}));
        return {found->second, *address - found->first.second};
      }
      buffers_.push_back({.place = place, .name = fmt::format("{}{}", name, i), .size = bytes_of(c_.copies[i])});
      return {buffers_.size() - 1, 0};
    };
    for (std::size_t i = 0; i < c_.copies.size(); ++i) {
      const auto& c = c_.copies[i];
      sides_[i] = {side(i, c.from, c.source, "from"), side(i, c.to, c.destination, "to")};
    }
  }
  static std::string bytes_of(const RecordedCopy& c) { return c.bytes == 0 ? "bytes" : size_text(c.bytes); }
  std::string at(const Side& s, std::uint64_t more = 0) const {
    const auto& b = buffers_[s.buffer];
    const auto offset = s.offset + more;
    return offset == 0 ? fmt::format("{}.{}", to_string(b.place), b.name)
                       : fmt::format("{}.{}[{}]", to_string(b.place), b.name, size_text(offset));
  }

  struct Queue {
    Place gpu{};
    std::string engine{}, name{}, stream{};
    std::vector<std::size_t> copies{};
  };
  void find_queues() {
    std::map<std::tuple<std::uint32_t, std::string, std::string>, std::size_t> known;
    std::map<std::string, std::size_t> streams;
    for (std::size_t i = 0; i < c_.copies.size(); ++i) {
      const auto& c = c_.copies[i];
      const auto gpu = c.from.is_host() ? c.to : c.from;
      const bool local = !c.from.is_host() && !c.to.is_host() && c.from.index == c.to.index;
      const auto engine = c.engine           ? fmt::format("engine={}", *c.engine)
                          : c.from.is_host() ? std::string("from=host")
                          : c.to.is_host()   ? std::string("peer=host")
                          : local            ? std::string("engine=2")
                                             : "peer=" + to_string(c.to);
      const auto stream = streams.try_emplace(c.stream, streams.size()).first->second;
      const auto [found, added] = known.try_emplace({gpu.index, c.stream, engine}, queues_.size());
      if (added) {
        auto name = fmt::format("s{}_{}", stream, engine);
        std::replace(name.begin(), name.end(), '=', '_');
        queues_.push_back({.gpu = gpu, .engine = engine, .name = name, .stream = c.stream});
      }
      queues_[found->second].copies.push_back(i);
    }
  }

  void queue(const Queue& q) {
    add("queue {}.{} {}  # stream {}\n", to_string(q.gpu), q.name, q.engine, q.stream.empty() ? "(none)" : q.stream);
    for (const auto i : q.copies) {
      const auto& c = c_.copies[i];
      if (c.after) add("  poll_mem addr=host.copy{} func=eq reference=1\n", *c.after);
      constexpr std::uint64_t kMost = max_bytes<CopyLinear>();
      add("  # {}\n", c.when);
      for (std::uint64_t done = 0; done == 0 || done < c.bytes; done += kMost)
        add("  copy_linear bytes={} src={} dst={}\n",
            c.bytes == 0 ? "bytes" : size_text(std::min(kMost, c.bytes - done)), at(sides_[i].first, done),
            at(sides_[i].second, done));
      if (awaited_.count(i) != 0) add("  fence addr=host.copy{} value=1\n", i);
    }
    out_ += "  atomic op=add_rtn_64 addr=host.done value=1\nend\n";
  }

  /// What a copy has stored is still there if no other copy stores to its bytes, or to what it reads.
  void expectations() {
    std::vector<std::size_t> stores(buffers_.size());
    for (const auto& [from, to] : sides_) ++stores[to.buffer];
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      const auto& [from, to] = sides_[i];
      if (stores[to.buffer] != 1 || stores[from.buffer] != 0) continue;
      add("expect {} == {}\n", range(to, i), range(from, i));
    }
  }
  std::string range(const Side& s, std::size_t copy) const {
    const auto& b = buffers_[s.buffer];
    return fmt::format("{}.{}[{}..+{}]", to_string(b.place), b.name, size_text(s.offset), bytes_of(c_.copies[copy]));
  }

  const RecordedCopies& c_;
  std::string out_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<Side, Side>> sides_;
  std::vector<Queue> queues_;
  std::set<std::size_t> awaited_;  ///< copies that others wait for
};

}  // namespace

std::string schedule_text(const RecordedCopies& c) { return CopiesText{c}.run(); }

}}  // namespace sdma::v0
