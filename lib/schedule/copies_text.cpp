// SPDX-License-Identifier: MIT
// Writes recorded copies as a schedule: buffers, a queue for each stream and engine, and what waits for what.
#include "copies_forms.hpp"
#include "sdma/core/number.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/schedule/copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace sdma { inline namespace v0_3 {
namespace detail {
namespace {

/// Which of the kernel's engines ROCr's is, by what the GPU and the software may be.
std::string engines_of_the_kernel(std::uint32_t rocr) {
  if (rocr < 2)
    return fmt::format(
        "ROCr's engine {0}, which is the kernel's engine {1} on gfx942 and gfx950 with ROCr since "
        "September 2024, engine {0} on gfx90a, and any on other GPUs",
        rocr, 1 - rocr);
  return fmt::format(
      "ROCr's engine {0}, which is the kernel's engine {0} on gfx942 and gfx950 if the kernel recommends "
      "one engine for each peer, and else any",
      rocr);
}

std::string engine_text(const RecordedCopy& c) {
  const bool local = !c.from.is_host() && !c.to.is_host() && c.from.index == c.to.index;
  return c.engine           ? fmt::format("engine={}", *c.engine)
         : c.from.is_host() ? "from=host"
         : c.to.is_host()   ? "peer=host"
         : local            ? "engine=2"
                            : "peer=" + to_string(c.to);
}

}  // namespace

std::vector<CopyQueue> queues_of(const RecordedCopies& r) {
  std::vector<CopyQueue> queues;
  std::map<std::tuple<std::uint32_t, std::string, std::string, std::string>, std::size_t> known;
  std::map<std::pair<std::string, std::string>, std::size_t> streams;
  for (std::size_t i = 0; i < r.copies.size(); ++i) {
    const auto& c = r.copies[i];
    const auto gpu = c.from.is_host() ? c.to : c.from;
    auto engine = engine_text(c), name = engine;
    if (c.rocr_engine && !c.engine) name += fmt::format("_rocr_{}", *c.rocr_engine);
    const bool alone = c.stream.empty();
    if (!alone) {
      const auto [found, added] = known.try_emplace({gpu.index, c.process, c.stream, name}, queues.size());
      if (!added) {
        queues[found->second].copies.push_back(i);
        continue;
      }
    }
    const auto stream = alone ? i : streams.try_emplace({c.process, c.stream}, streams.size()).first->second;
    name = fmt::format("{}{}_{}", alone ? "c" : "s", stream, name);
    std::replace(name.begin(), name.end(), '=', '_');
    CopyQueue q{.gpu = gpu, .engine = std::move(engine), .name = std::move(name), .stream = c.stream, .copies = {i}};
    q.comment = alone ? "no stream is recorded" : fmt::format("stream {}", c.stream);
    if (!c.process.empty()) q.comment += fmt::format(" of process {}", c.process);
    if (c.rocr_engine)
      q.comment +=
          "; " + (c.engine ? fmt::format("ROCr's engine {}", *c.rocr_engine) : engines_of_the_kernel(*c.rocr_engine));
    queues.push_back(std::move(q));
  }
  return queues;
}

}  // namespace detail

namespace {

class CopiesText {
 public:
  explicit CopiesText(const RecordedCopies& c) : c_(c) {}

  std::string run() {
    constexpr std::size_t kText = 300;  // of a copy: what grows step by step needs twice the memory
    out_.reserve(kText * c_.copies.size());
    for (const auto& c : c_.copies) awaited_.insert(c.after.begin(), c.after.end());
    find_buffers();
    head();
    for (const auto& b : buffers_)
      add("buffer {}.{} bytes={} init=random{}\n", to_string(b.place), b.name, b.size, b.comment);
    for (const auto i : awaited_) add("signal host.copy{} value=0 bits=32\n", i);
    out_ += "signal host.done value=0\n";
    for (const auto& q : detail::queues_of(c_)) queue(q);
    out_ += "host main\n  submit *\n  wait host.done == queues\nend\n";
    expectations();
    return std::move(out_);
  }

 private:
  template <class... A> void add(fmt::format_string<const A&...> f, const A&... a) {
    fmt::format_to(std::back_inserter(out_), f, a...);
  }

  void head() {
    add("sdma 1\n# {} of {}, which is {}. What it does not say:\n", detail::plural_of_copies(c_.copies.size()), c_.file,
        c_.form);
    for (const auto& u : c_.unknown) add("#   {}\n", in_comment(u));
    if (!c_.left_out.empty()) out_ += "# Left out, because no engine made them:\n";
    for (const auto& l : c_.left_out) add("#   {}\n", in_comment(l));
    out_ += "# Everything is submitted at once: when each copy began is in its comment.\n";
    if (std::any_of(c_.copies.begin(), c_.copies.end(), [](const auto& c) { return c.bytes == 0; }))
      out_ += "param bytes = 1M\n";
    add("gpus {}", c_.gpus.size());
    for (std::size_t g = 0; g < c_.gpus.size(); ++g)
      add("{} gpu{} is {}", g == 0 ? "  #" : ";", g, in_comment(c_.gpus[g]));
    out_ += "\n";
  }

  /// A name of the file, which may have any characters: on one line.
  static std::string in_comment(std::string text) {
    for (auto& c : text)
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    return text;
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
  struct Sides {
    Side from{}, to{}, second{};
  };

  void find_buffers() {
    sides_.resize(c_.copies.size());
    using Range = std::pair<std::uint64_t, std::uint64_t>;
    using Space = std::pair<std::string, std::uint64_t>;  // a process, and a place; the host is the last one
    std::map<Space, std::vector<Range>> known;
    const auto key = [](const RecordedCopy& c, Place p) {
      return Space{c.process, p.is_host() ? ~std::uint64_t{0} : p.index};
    };
    // A buffer is aligned, and so is what packets other than copies ask for.
    const bool plain = std::all_of(c_.copies.begin(), c_.copies.end(),
                                   [](const auto& c) { return c.kind == RecordedCopy::Kind::copy; });
    const auto align = [&](std::uint64_t address) { return plain ? address : address / kAlign * kAlign; };
    for (const auto& c : c_.copies)
      for (const auto& [place, address] :
           {std::pair(c.from, c.source), std::pair(c.to, c.destination), std::pair(c.second_to, c.second)})
        if (has_range(c, address)) known[key(c, place)].emplace_back(align(*address), *address + c.bytes);
    std::map<std::pair<Space, std::uint64_t>, std::size_t> at;
    for (auto& [space, ranges] : known) {
      const auto place = space.second;
      std::sort(ranges.begin(), ranges.end());
      const auto first = buffers_.size();
      for (const auto& [begin, end] : ranges) {
        if (buffers_.size() > first && begin <= buffers_.back().end) {
          buffers_.back().end = std::max(buffers_.back().end, end);
          continue;
        }
        at.emplace(std::pair(space, begin), buffers_.size());
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
    const auto side = [&](std::size_t i, Place place, std::optional<std::uint64_t> address, const char* name) -> Side {
      if (has_range(c_.copies[i], address)) {
        const auto found = std::prev(at.upper_bound({key(c_.copies[i], place), *address}));
        return {found->second, *address - found->first.second};
      }
      buffers_.push_back({.place = place, .name = fmt::format("{}{}", name, i), .size = bytes_of(c_.copies[i])});
      return {buffers_.size() - 1, 0};
    };
    for (std::size_t i = 0; i < c_.copies.size(); ++i) {
      const auto& c = c_.copies[i];
      sides_[i] = {side(i, c.from, c.source, "from"), side(i, c.to, c.destination, "to")};
      if (c.kind == RecordedCopy::Kind::broadcast) sides_[i].second = side(i, c.second_to, c.second, "second");
    }
  }
  /// An address without a size is none of a buffer, nor is a range that goes round.
  static bool has_range(const RecordedCopy& c, std::optional<std::uint64_t> address) {
    return address && c.bytes != 0 && *address + c.bytes > *address;
  }
  static std::string bytes_of(const RecordedCopy& c) { return c.bytes == 0 ? "bytes" : size_text(c.bytes); }
  /// The bytes of the packet number `part` of a loop.
  std::string part(const Side& s) const {
    const auto& b = buffers_[s.buffer];
    const auto offset = s.offset == 0 ? std::string{} : size_text(s.offset) + "+";
    return fmt::format("{}.{}[{}part*{}]", to_string(b.place), b.name, offset, size_text(kMost));
  }
  std::string at(const Side& s, std::uint64_t more = 0) const {
    const auto& b = buffers_[s.buffer];
    const auto offset = s.offset + more;
    return offset == 0 ? fmt::format("{}.{}", to_string(b.place), b.name)
                       : fmt::format("{}.{}[{}]", to_string(b.place), b.name, size_text(offset));
  }

  /// The packet that moves so many bytes, each place of which `at` writes.
  template <class F> static std::string packet(const RecordedCopy& c, const Sides& s, const std::string& bytes, F at) {
    switch (c.kind) {
      case RecordedCopy::Kind::broadcast:
        return fmt::format("copy_broadcast bytes={} src={} dst1={} dst2={}", bytes, at(s.from), at(s.to), at(s.second));
      case RecordedCopy::Kind::swap: return fmt::format("copy_swap bytes={} a={} b={}", bytes, at(s.from), at(s.to));
      case RecordedCopy::Kind::copy: break;
    }
    return fmt::format("copy_linear bytes={} src={} dst={}", bytes, at(s.from), at(s.to));
  }

  void queue(const detail::CopyQueue& q) {
    add("queue {}.{} {}  # {}\n", to_string(q.gpu), q.name, q.engine, in_comment(q.comment));
    for (const auto i : q.copies) {
      const auto& c = c_.copies[i];
      for (const auto p : c.after) add("  poll_mem addr=host.copy{} func=eq reference=1\n", p);
      add("  # {}{}\n", in_comment(c.when), c.phase.empty() ? "" : ", in " + in_comment(c.phase));
      for (const auto& n : c.notes) add("  # note: {}\n", in_comment(n));
      // The text stays short, whatever the size is.
      constexpr std::uint64_t kFew = 4;
      std::uint64_t done = 0;
      if (const auto whole = c.bytes / kMost; whole > kFew) {
        add("  for part in 0..{}\n    {}\n  end\n", whole,
            packet(c, sides_[i], size_text(kMost), [&](const Side& s) { return part(s); }));
        done = whole * kMost;
      }
      for (bool more = c.bytes == 0 || done < c.bytes; more; more = done < c.bytes) {
        const auto bytes = std::min(kMost, c.bytes - done);
        add("  {}\n", packet(c, sides_[i], c.bytes == 0 ? "bytes" : size_text(bytes),
                             [&](const Side& s) { return at(s, done); }));
        done += bytes;
      }
      if (awaited_.count(i) != 0) add("  fence addr=host.copy{} value=1\n", i);
    }
    out_ += "  atomic op=add_rtn_64 addr=host.done value=1\nend\n";
  }

  /// What a copy has stored is still there if no other copy stores to its bytes, or to what it reads. Nothing is
  /// expected of one that did not end well.
  void expectations() {
    using Kind = RecordedCopy::Kind;
    std::vector<std::size_t> stores(buffers_.size());
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      ++stores[sides_[i].to.buffer];
      if (c_.copies[i].kind == Kind::broadcast) ++stores[sides_[i].second.buffer];
      if (c_.copies[i].kind == Kind::swap) ++stores[sides_[i].from.buffer];
    }
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      const auto& c = c_.copies[i];
      const auto& [from, to, second] = sides_[i];
      if (stores[from.buffer] != 0 || !c.ended) continue;
      if (stores[to.buffer] == 1) add("expect {} == {}\n", range(to, i), range(from, i));
      if (c.kind == Kind::broadcast && stores[second.buffer] == 1)
        add("expect {} == {}\n", range(second, i), range(from, i));
    }
  }
  std::string range(const Side& s, std::size_t copy) const {
    const auto& b = buffers_[s.buffer];
    return fmt::format("{}.{}[{}..+{}]", to_string(b.place), b.name, size_text(s.offset), bytes_of(c_.copies[copy]));
  }

  static constexpr std::uint64_t kMost = max_bytes<CopyLinear>();  // of one packet
  static_assert(kMost == max_bytes<CopyBroadcast>() && kMost == max_bytes<CopySwap>());
  static constexpr std::uint64_t kAlign = 64;  // of a swap; a broadcast needs less

  const RecordedCopies& c_;
  std::string out_;
  std::vector<Buffer> buffers_;
  std::vector<Sides> sides_;
  std::set<std::size_t> awaited_;  ///< copies that others wait for
};

}  // namespace

std::string schedule_text(const RecordedCopies& c) { return CopiesText{c}.run(); }

}}  // namespace sdma::v0_3
