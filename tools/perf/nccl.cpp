// SPDX-License-Identifier: MIT
#include "companions.hpp"

#include "collectives/pattern.hpp"
#include "hip_streams.hpp"
#include "nccl_calls.hpp"
#include "pieces.hpp"
#include "ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace collectives::perf {

using namespace sdma;

namespace {

using Status = NcclCalls::Status;

constexpr unsigned kWarmups = 3;
constexpr std::uint64_t kUnit = 2 << 20;  ///< bytes: windows are multiples of it
constexpr auto kPoisoned = std::byte{kPoison};

/// What one rank has.
struct Rank {
  std::size_t number{};
  GpuStream stream;
  NcclCalls::Comm kernels{}, copies{};  ///< communicators of the two modes
  GpuVa buffers[kBuffers]{};            ///< GPU memory
};

/// The ranks of this process, and what is the same for each size.
class World {
 public:
  World(const NcclCalls& n, std::unique_ptr<StreamDriver> d, const Settings& s, Watchdog& w)
      : nccl_(n), driver_(std::move(d)), settings_(s), dog_(w), limit_(set_up_limit(s)) {}

  Result<void, Diagnostic> make() {
    const auto own = settings_.options.gpus / settings_.processes;
    const auto first = settings_.ranks ? settings_.ranks->rank() * own : 0;
    for (auto i = first; i < first + own; ++i) {
      auto s = GpuStream::open(*driver_, i);
      if (!s) return std::move(s.error());
      ranks_.push_back({.number = i, .stream = *std::move(s)});
    }
    {
      const auto here = ranks_.front().stream.current();
      auto go = driver_->word();
      if (!go) return std::move(go.error());
      go_ = *go;
    }
    if (auto r = make_communicators(); !r) return r;
    if (auto r = make_buffers(); !r) return r;
    limit_ = settings_.timeout;
    return {};
  }

  std::string version() const { return fmt::format("{} {}", family(), nccl_.version_text()); }
  std::vector<Way> ways() const {
    auto all = settings_.rivals;
    if (!copies_) std::erase(all, Way{.rival = Rival::nccl_ce});
    return all;
  }
  const std::string& note() const noexcept { return note_; }

  /// All ranks of this process, in a group of NCCL.
  Result<void, Diagnostic> perform(Rival mode, const Options& o, std::span<const Piece> pieces) {
    if (nccl_.send)
      return each(nccl_.name, [&](Rank& r, int i) {
        auto s = NcclCalls::kSuccess;
        for (const auto& p : pieces) {
          if (p.rank != static_cast<std::size_t>(i) || s != NcclCalls::kSuccess) continue;
          auto* const at = reinterpret_cast<void*>((r.buffers[p.at.buffer] + p.at.offset).value);
          const auto peer = static_cast<int>(p.other);
          s = p.at.buffer == kFrom ? nccl_.send(at, p.bytes, NcclCalls::kBytes, peer, r.kernels, r.stream.handle())
                                   : nccl_.receive(at, p.bytes, NcclCalls::kBytes, peer, r.kernels, r.stream.handle());
        }
        return s;
      });
    return each(nccl_.name, [&](Rank& r, int i) {
      const auto comm = mode == Rival::nccl_ce ? r.copies : r.kernels;
      const auto all = operands(o, static_cast<std::size_t>(i));
      auto* const from = reinterpret_cast<const void*>((r.buffers[all.from.buffer] + all.from.offset).value);
      auto* const to = reinterpret_cast<void*>((r.buffers[all.to.buffer] + all.to.offset).value);
      if (nccl_.symmetric) return nccl_.symmetric(from, to, count_of(o), NcclCalls::kBytes, comm, r.stream.handle());
      return nccl_.rooted(from, to, count_of(o), NcclCalls::kBytes, static_cast<int>(o.root), comm, r.stream.handle());
    });
  }
  std::vector<Rank>& ranks() noexcept { return ranks_; }
  /// Null: it is of another process.
  Rank* own(std::size_t number) noexcept {
    const auto at = number - ranks_.front().number;
    return at < ranks_.size() ? &ranks_[at] : nullptr;
  }
  const Signal& go() const noexcept { return go_; }
  std::uint32_t next() noexcept { return ++value_; }
  std::chrono::nanoseconds timeout() const noexcept { return settings_.timeout; }
  Result<void, Diagnostic> await(std::uint32_t value, Deadline d) const {
    for (const auto& r : ranks_) {
      auto done = r.stream.await(value, d);
      if (done) continue;
      for (const auto comm : {r.kernels, r.copies}) {
        auto s = NcclCalls::kSuccess;
        if (comm && nccl_.async_error(comm, &s) == NcclCalls::kSuccess)
          if (auto known = good("an earlier call", s, comm); !known) return known;
      }
      return done;
    }
    return {};
  }
  /// "NCCL" or "RCCL"
  std::string_view family() const noexcept { return family_of(settings_.rivals.front().rival); }

 private:
  /// Calls `f(rank, number)` for each rank of this process, with its GPU current, in one group.
  template <class F> Result<void, Diagnostic> each(const char* call, F f) {
    const auto bounded = dog_.watch(call, limit_);
    if (auto r = good("ncclGroupStart", nccl_.group_start()); !r) return r;
    Result<void, Diagnostic> first;
    for (std::size_t i = 0; i < ranks_.size() && first; ++i) {
      const auto here = ranks_[i].stream.current();
      first = good(call, f(ranks_[i], static_cast<int>(ranks_[i].number)));
    }
    // Also after an error, because the group has to be closed.
    const auto here = ranks_.front().stream.current();
    auto end = good(call, nccl_.group_end());
    return first ? std::move(end) : std::move(first);
  }
  Result<void, Diagnostic> good(const char* call, Status s, NcclCalls::Comm comm = nullptr) const {
    if (s == NcclCalls::kSuccess) return {};
    const char* more = nccl_.last_error ? nccl_.last_error(comm) : nullptr;
    return Diagnostic{
        .where = std::string(family()),
        .message = fmt::format("{}: {}{}{}", call, nccl_.error_string(s), more && *more ? ": " : "", more ? more : ""),
        .hint = fmt::format("NCCL_DEBUG=WARN lets {} print more", family())};
  }
  /// What names a communicator: of rank 0, for all processes.
  Result<NcclCalls::Id, Diagnostic> make_id() {
    NcclCalls::Id id;
    if (ranks_.front().number == 0) {
      const auto bounded = dog_.watch("ncclGetUniqueId", limit_);
      const auto here = ranks_.front().stream.current();
      if (auto r = good("ncclGetUniqueId", nccl_.get_unique_id(&id)); !r) return std::move(r.error());
    }
    if (!settings_.ranks) return id;
    const auto all = settings_.ranks->all({id.bytes, sizeof id.bytes});
    if (!all) return all.error();
    all->front().copy(id.bytes, sizeof id.bytes);
    return id;
  }
  Result<void, Diagnostic> make_communicators() {
    const auto n = static_cast<int>(settings_.options.gpus);
    const auto id = make_id();
    if (!id) return id.error();
    if (auto r = each("ncclCommInitRank", [&](Rank& rank, int i) { return nccl_.init_rank(&rank.kernels, n, *id, i); });
        !r)
      return r;
    const auto& asked = settings_.rivals;
    if (std::find(asked.begin(), asked.end(), Way{.rival = Rival::nccl_ce}) == asked.end()) return {};
    const auto c = settings_.options.collective;
    if (c == Collective::broadcast || c == Collective::alltoallv) {
      note_ = fmt::format("nccl-ce is left out: NCCL {} by kernels in every mode",
                          c == Collective::broadcast ? "broadcasts" : "sends and receives");
      return {};
    }
    if (!nccl_.copies()) {
      note_ = fmt::format("nccl-ce is left out: the copy-engine mode needs NCCL 2.28, and this is {}", version());
      return {};
    }
    return make_copying_communicators();
  }
  Result<void, Diagnostic> make_copying_communicators() {
    const auto id = make_id();
    if (!id) return id.error();
    copies_ = true;
    const auto n = static_cast<int>(settings_.options.gpus);
    std::vector<NcclCalls::Config> configs(settings_.options.gpus);
    return each("ncclCommInitRankConfig", [&](Rank& rank, int i) {
      auto& c = configs[static_cast<std::size_t>(i)];
      c.cta_policy = NcclCalls::kNoKernels;
      return nccl_.init_rank_config(&rank.copies, n, *id, i, &c);
    });
  }
  Result<void, Diagnostic> make_buffers() {
    std::uint64_t most = 0;
    for (const auto bytes : sizes(settings_))
      most = std::max(most, buffer_of(options_of(settings_, settings_.rivals.front(), bytes)));
    most = (most + kUnit - 1) / kUnit * kUnit;
    for (auto& rank : ranks_)
      for (auto& buffer : rank.buffers) {
        auto at = allocate(rank.stream, most);
        if (!at) return std::move(at.error());
        buffer = *at;
      }
    return copies_ ? make_windows(most) : Result<void, Diagnostic>{};
  }
  Result<void, Diagnostic> make_windows(std::uint64_t bytes) {
    for (std::size_t b = 0; b < kBuffers; ++b) {
      std::vector<NcclCalls::Window> windows(ranks_.size());
      if (auto r = each("ncclCommWindowRegister",
                        [&](Rank& rank, int i) {
                          return nccl_.register_window(
                              rank.copies, reinterpret_cast<void*>(rank.buffers[b].value), bytes,
                              &windows[static_cast<std::size_t>(i) - ranks_.front().number], NcclCalls::kSymmetric);
                        });
          !r)
        return r;
      bool made = std::find(windows.begin(), windows.end(), nullptr) == windows.end();
      if (settings_.ranks) {
        const auto all = settings_.ranks->all(made ? "made" : "");
        if (!all) return all.error();
        made = std::find(all->begin(), all->end(), "") == all->end();
      }
      if (made) continue;
      copies_ = false;
      note_ = "nccl-ce is left out: NCCL makes no symmetric windows on this machine";
    }
    return {};
  }
  /// Of NCCL if it allocates, because windows need its memory.
  Result<GpuVa, Diagnostic> allocate(const GpuStream& s, std::uint64_t bytes) {
    const auto here = s.current();
    if (!nccl_.allocate) return driver_->allocate(s.rank(), bytes);
    const auto bounded = dog_.watch("ncclMemAlloc", limit_);
    void* at = nullptr;
    if (auto r = good("ncclMemAlloc", nccl_.allocate(&at, bytes)); !r) return std::move(r.error());
    return GpuVa{reinterpret_cast<std::uint64_t>(at)};
  }

  NcclCalls nccl_;
  std::unique_ptr<StreamDriver> driver_;
  const Settings& settings_;
  Watchdog& dog_;
  std::chrono::nanoseconds limit_;  ///< of a call of NCCL
  std::vector<Rank> ranks_{};
  Signal go_{};
  std::uint32_t value_ = 0;  ///< of `go` and `done` in the last round
  bool copies_ = false;      ///< the copy-engine mode can be measured
  std::string note_{};
};

/// One mode at one size.
class Collectives final : public Contender {
 public:
  Collectives(World& w, Rival mode, const Options& o)
      : world_(w), mode_(mode), options_(o), pieces_(pieces(o)), bytes_(count_of(o)) {}

  Result<void, Diagnostic> warm(Deadline d) {
    for (unsigned i = 0; i < kWarmups; ++i) {
      if (auto r = world_.perform(mode_, options_, pieces_); !r) return r;
      if (auto r = end_round(world_.next()); !r) return r;
    }
    return wait(d);
  }

  Result<void, Diagnostic> fill(std::uint64_t seed) override {
    seed_ = seed;
    for (const auto& p : pieces_) {
      auto* const r = world_.own(p.rank);
      if (!r) continue;
      const auto bytes = std::span(bytes_).first(p.bytes);
      if (p.before) fill_pattern(bytes, seed_, p.before->rank, p.before->offset);
      else std::fill(bytes.begin(), bytes.end(), kPoisoned);
      if (auto e = r->stream.upload(address(*r, p), bytes, deadline()); !e) return e;
    }
    return {};
  }

  Result<void, Diagnostic> arm(Deadline) override {
    const auto value = world_.next();
    auto armed = enqueue(value);
    // Otherwise streams of other ranks would wait for ever.
    if (!armed) world_.go().set(value);
    round_ = value;
    return armed;
  }
  Result<void, Diagnostic> start(Deadline) override {
    world_.go().set(round_);
    return {};
  }
  Result<void, Diagnostic> wait(Deadline d) override { return world_.await(round_, d); }

  Result<Check, Diagnostic> check() override {
    Check result;
    for (const auto& p : pieces_) {
      auto* const r = world_.own(p.rank);
      if (!p.after || !r) continue;
      const auto bytes = std::span(bytes_).first(p.bytes);
      if (auto e = r->stream.download(bytes, address(*r, p), deadline()); !e) return std::move(e.error());
      const auto m = mismatch(std::span<const std::byte>(bytes), seed_, p.after->rank, p.after->offset);
      if (m.wrong != 0 && result.wrong == 0)
        result.first = fmt::format("{}: byte {} of rank {} is {:#04x}, not {:#04x}", name(mode_), p.at.offset + m.first,
                                   p.rank, static_cast<unsigned>(bytes[m.first]), static_cast<unsigned>(m.should));
      result.wrong += m.wrong;
    }
    return result;
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> all;
    const auto moved = buffer_of(options_);
    if (moved != options_.bytes && options_.collective != Collective::alltoallv)
      all.push_back(fmt::format("{}'s parts are equal: it moves {} parts of {} bytes, not {} bytes", world_.family(),
                                options_.gpus, count_of(options_), options_.bytes));
    if (options_.collective == Collective::all_to_all && !options_.own_part)
      all.push_back(fmt::format(
          "{}'s all-to-all also copies the part that a GPU sends to itself; with --set own_part=yes, pcpy and b2b do, "
          "too",
          world_.family()));
    if (options_.collective == Collective::scatter)
      all.push_back(fmt::format("{}'s scatter also copies the root's own part", world_.family()));
    return all;
  }

 private:
  static GpuVa address(const Rank& r, const Piece& p) noexcept { return r.buffers[p.at.buffer] + p.at.offset; }
  Deadline deadline() const noexcept { return Deadline::in(world_.timeout()); }

  Result<void, Diagnostic> enqueue(std::uint32_t value) {
    for (const auto& r : world_.ranks()) {
      const auto here = r.stream.current();
      if (auto e = r.stream.wait_for(world_.go(), value); !e) return e;
    }
    if (auto e = world_.perform(mode_, options_, pieces_); !e) return e;
    return end_round(value);
  }
  Result<void, Diagnostic> end_round(std::uint32_t value) {
    round_ = value;
    for (const auto& r : world_.ranks()) {
      const auto here = r.stream.current();
      if (auto e = r.stream.write(value); !e) return e;
    }
    return {};
  }

  World& world_;
  Rival mode_;
  Options options_;
  std::vector<Piece> pieces_;
  std::vector<std::byte> bytes_;  ///< as long as the longest piece
  std::uint64_t seed_ = 0;
  std::uint32_t round_ = 0;
};

}  // namespace

Result<Nccl, Diagnostic> Nccl::open(Device& d, const Settings& s, Watchdog& dog) {
  const auto rival = s.rivals.front().rival;
  const auto library = [&] {
    const auto bounded = dog.watch("loading the library of --against", set_up_limit(s));
    return NcclCalls::find(rival);
  }();
  if (!library) return library.error();
  const auto nccl = NcclCalls::load(*library, s.options.collective);
  if (!nccl) return nccl.error();
  auto driver = rival == Rival::rccl ? hip_driver(d, s, *library) : cuda_driver(d, s);
  if (!driver) return std::move(driver.error());
  const auto addresses = pci_addresses(d, s);
  if (std::set(addresses.begin(), addresses.end()).size() != addresses.size())
    return Diagnostic{.where = "--against",
                      .message = fmt::format("{} needs a GPU of its own for each rank, and some of these share one",
                                             family_of(rival)),
                      .hint = "use at most as many GPUs as the machine has: -g"};
  const auto world = std::make_shared<World>(*nccl, *std::move(driver), s, dog);
  if (auto r = world->make(); !r) return std::move(r.error());
  const auto prepare = [world, &s](const Way& way, const Options& o) -> Result<std::unique_ptr<Contender>, Diagnostic> {
    auto c = std::make_unique<Collectives>(*world, way.rival, o);
    if (auto r = c->warm(Deadline::in(s.timeout)); !r) return std::move(r.error());
    return std::unique_ptr<Contender>(std::move(c));
  };
  return Nccl{world->version(), world->ways(), world->note(), prepare};
}

}  // namespace collectives::perf
