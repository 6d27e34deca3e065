#include "nccl.hpp"

#include "collectives/pattern.hpp"
#include "nccl_calls.hpp"

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
  CudaStream stream;
  NcclCalls::Comm kernels{}, copies{};  ///< communicators of the two modes
  std::byte *in{}, *out{};              ///< GPU memory; equal if in place
};

/// The ranks, and what is the same for each size.
class World final : public Nccl {
 public:
  World(const NcclCalls& n, const Settings& s, Watchdog& w)
      : nccl_(n), settings_(s), dog_(w), limit_(set_up_limit(s)) {}

  Result<void, Diagnostic> make(Device&, const CudaCalls&, const std::vector<int>& ordinals);

  std::string version() const override {
    return fmt::format("NCCL {}.{}.{}", nccl_.version / 10000, nccl_.version / 100 % 100, nccl_.version % 100);
  }
  std::vector<Way> ways() const override {
    auto all = settings_.rivals;
    if (!note_.empty()) std::erase(all, Way{.rival = Rival::nccl_ce});
    return all;
  }
  std::string note() const override { return note_; }
  Result<std::unique_ptr<Contender>, Diagnostic> prepare(const Way&, const Options&) override;

  /// All ranks, in a group of NCCL.
  Result<void, Diagnostic> perform(Rival, std::uint64_t part);
  std::vector<Rank>& ranks() noexcept { return ranks_; }
  const Signal& go() const noexcept { return *go_; }
  std::uint32_t next() noexcept { return ++value_; }
  std::chrono::nanoseconds timeout() const noexcept { return settings_.timeout; }
  Result<void, Diagnostic> await(std::uint32_t value, Deadline) const;
  bool in_place() const noexcept { return settings_.options.collective == Collective::all_gather; }

 private:
  /// Calls `f(rank, number)` for each rank, with its context, in one group.
  template <class F> Result<void, Diagnostic> each(const char* call, F f);
  Result<void, Diagnostic> good(const char* call, Status, NcclCalls::Comm = nullptr) const;
  Result<void, Diagnostic> make_communicators();
  Result<void, Diagnostic> make_buffers();

  NcclCalls nccl_;
  const Settings& settings_;
  Watchdog& dog_;
  std::chrono::nanoseconds limit_;  ///< of a call of NCCL
  std::vector<Rank> ranks_{};
  SignalMemory go_{};
  std::uint32_t value_ = 0;  ///< of `go` and `done` in the last round
  std::string note_{};
};

Result<void, Diagnostic> World::good(const char* call, Status s, NcclCalls::Comm comm) const {
  if (s == NcclCalls::kSuccess) return {};
  const char* more = nccl_.last_error ? nccl_.last_error(comm) : nullptr;
  return Diagnostic{
      .where = "NCCL",
      .message = fmt::format("{}: {}{}{}", call, nccl_.error_string(s), more && *more ? ": " : "", more ? more : ""),
      .hint = "NCCL_DEBUG=WARN lets NCCL print more"};
}

template <class F> Result<void, Diagnostic> World::each(const char* call, F f) {
  const auto bounded = dog_.watch(call, limit_);
  if (auto r = good("ncclGroupStart", nccl_.group_start()); !r) return r;
  Result<void, Diagnostic> first;
  for (std::size_t i = 0; i < ranks_.size() && first; ++i) {
    const CudaStream::Current here(ranks_[i].stream);
    first = good(call, f(ranks_[i], static_cast<int>(i)));
  }
  // Also after an error, because the group has to be closed.
  const CudaStream::Current here(ranks_.front().stream);
  auto end = good(call, nccl_.group_end());
  return first ? std::move(end) : std::move(first);
}

Result<void, Diagnostic> World::make(Device& d, const CudaCalls& cuda, const std::vector<int>& ordinals) {
  for (const auto o : ordinals) {
    auto s = CudaStream::open(cuda, d, o);
    if (!s) return std::move(s.error());
    ranks_.push_back({.stream = *std::move(s)});
  }
  auto go = d.create_signal();
  if (!go) return std::move(go.error());
  go_ = *std::move(go);
  if (auto r = make_communicators(); !r) return r;
  if (auto r = make_buffers(); !r) return r;
  limit_ = settings_.timeout;
  return {};
}

Result<void, Diagnostic> World::make_communicators() {
  const auto n = static_cast<int>(ranks_.size());
  NcclCalls::Id id;
  const auto bounded = dog_.watch("ncclGetUniqueId", limit_);
  {
    const CudaStream::Current here(ranks_.front().stream);
    if (auto r = good("ncclGetUniqueId", nccl_.get_unique_id(&id)); !r) return r;
  }
  if (auto r = each("ncclCommInitRank", [&](Rank& rank, int i) { return nccl_.init_rank(&rank.kernels, n, id, i); });
      !r)
    return r;
  if (nccl_.version < NcclCalls::kCopyEngines || !nccl_.init_rank_config || !nccl_.register_window) {
    note_ = fmt::format("nccl-ce is left out: the copy-engine mode needs NCCL 2.28, and this is {}", version());
    return {};
  }
  {
    const CudaStream::Current here(ranks_.front().stream);
    if (auto r = good("ncclGetUniqueId", nccl_.get_unique_id(&id)); !r) return r;
  }
  std::vector<NcclCalls::Config> configs(ranks_.size());
  return each("ncclCommInitRankConfig", [&](Rank& rank, int i) {
    auto& c = configs[static_cast<std::size_t>(i)];
    c.cta_policy = NcclCalls::kNoKernels;
    return nccl_.init_rank_config(&rank.copies, n, id, i, &c);
  });
}

Result<void, Diagnostic> World::make_buffers() {
  std::uint64_t most = 0;
  for (const auto bytes : sizes(settings_))
    most = std::max(most, chunk_of(options_of(settings_, settings_.rivals.front(), bytes)) * ranks_.size());
  most = (most + kUnit - 1) / kUnit * kUnit;
  const auto bounded = dog_.watch("ncclMemAlloc", limit_);
  for (auto& r : ranks_) {
    const CudaStream::Current here(r.stream);
    for (auto** to : {&r.in, &r.out}) {
      if (to == &r.out && in_place()) continue;
      void* at = nullptr;
      if (auto e = good("ncclMemAlloc", nccl_.allocate(&at, most)); !e) return e;
      *to = static_cast<std::byte*>(at);
    }
    if (in_place()) r.out = r.in;
  }
  if (!note_.empty()) return {};
  for (std::byte* Rank::*const buffer : {&Rank::in, &Rank::out}) {
    if (buffer == &Rank::out && in_place()) continue;
    std::vector<NcclCalls::Window> windows(ranks_.size());
    if (auto r = each("ncclCommWindowRegister",
                      [&](Rank& rank, int i) {
                        return nccl_.register_window(rank.copies, rank.*buffer, most,
                                                     &windows[static_cast<std::size_t>(i)], NcclCalls::kSymmetric);
                      });
        !r)
      return r;
    if (std::find(windows.begin(), windows.end(), nullptr) != windows.end())
      note_ = "nccl-ce is left out: NCCL makes no symmetric windows on this machine";
  }
  return {};
}

Result<void, Diagnostic> World::perform(Rival mode, std::uint64_t part) {
  const bool gather = in_place();
  return each(gather ? "ncclAllGather" : "ncclAlltoAll", [&](Rank& r, int i) {
    const auto comm = mode == Rival::nccl ? r.kernels : r.copies;
    if (gather)
      return nccl_.all_gather(r.in + part * static_cast<std::uint64_t>(i), r.out, part, NcclCalls::kBytes, comm,
                              r.stream.handle());
    return nccl_.all_to_all(r.in, r.out, part, NcclCalls::kBytes, comm, r.stream.handle());
  });
}

Result<void, Diagnostic> World::await(std::uint32_t value, Deadline d) const {
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

/// One mode at one size.
class Collectives final : public Contender {
 public:
  Collectives(World& w, Rival mode, const Options& o) : world_(w), mode_(mode), options_(o), part_(chunk_of(o)) {}

  Result<void, Diagnostic> warm(Deadline d) {
    for (unsigned i = 0; i < kWarmups; ++i) {
      if (auto r = world_.perform(mode_, part_); !r) return r;
      if (auto r = end_round(world_.next()); !r) return r;
    }
    return wait(d);
  }

  Result<void, Diagnostic> fill(std::uint64_t seed) override {
    seed_ = seed;
    return at_each_part([&](Rank& r, std::size_t rank, std::size_t part, Deadline d) -> Result<void, Diagnostic> {
      const auto offset = part * part_;
      const bool own = !world_.in_place() || part == rank;
      if (own) fill_pattern(bytes_, seed_, rank, offset);
      else std::fill(bytes_.begin(), bytes_.end(), kPoisoned);
      if (auto e = r.stream.upload(address(r.in, offset), bytes_, d); !e || world_.in_place()) return e;
      std::fill(bytes_.begin(), bytes_.end(), kPoisoned);
      return r.stream.upload(address(r.out, offset), bytes_, d);
    });
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
    auto done = at_each_part([&](Rank& r, std::size_t rank, std::size_t part, Deadline d) -> Result<void, Diagnostic> {
      if (auto e = r.stream.download(bytes_, address(r.out, part * part_), d); !e) return e;
      const auto m =
          mismatch(std::span<const std::byte>(bytes_), seed_, part, (world_.in_place() ? part : rank) * part_);
      if (m.wrong != 0 && result.wrong == 0)
        result.first =
            fmt::format("{}: byte {} of rank {} is {:#04x}, not {:#04x}", name(mode_), part * part_ + m.first, rank,
                        static_cast<unsigned>(bytes_[m.first]), static_cast<unsigned>(m.should));
      result.wrong += m.wrong;
      return {};
    });
    if (!done) return std::move(done.error());
    return result;
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> all;
    const auto n = world_.ranks().size();
    if (part_ * n != options_.bytes)
      all.push_back(
          fmt::format("NCCL's parts are equal: it moves {} parts of {} bytes, not {} bytes", n, part_, options_.bytes));
    if (!world_.in_place() && !options_.own_part)
      all.push_back(
          "NCCL's all-to-all also copies the part that a GPU sends to itself; with --set own_part=yes, pcpy "
          "and b2b do, too");
    return all;
  }

 private:
  static std::uint64_t address(const std::byte* base, std::uint64_t offset) noexcept {
    return reinterpret_cast<std::uint64_t>(base) + offset;
  }

  Result<void, Diagnostic> enqueue(std::uint32_t value) {
    for (const auto& r : world_.ranks()) {
      const CudaStream::Current here(r.stream);
      if (auto e = r.stream.wait_for(world_.go(), value); !e) return e;
    }
    if (auto e = world_.perform(mode_, part_); !e) return e;
    return end_round(value);
  }
  Result<void, Diagnostic> end_round(std::uint32_t value) {
    round_ = value;
    for (const auto& r : world_.ranks()) {
      const CudaStream::Current here(r.stream);
      if (auto e = r.stream.write(value); !e) return e;
    }
    return {};
  }

  /// f(rank, its number, part, deadline), with `bytes_` as long as a part.
  template <class F> Result<void, Diagnostic> at_each_part(F f) {
    bytes_.resize(part_);
    auto& ranks = world_.ranks();
    for (std::size_t i = 0; i < ranks.size(); ++i)
      for (std::size_t part = 0; part < ranks.size(); ++part)
        if (auto e = f(ranks[i], i, part, Deadline::in(world_.timeout())); !e) return e;
    return {};
  }

  World& world_;
  Rival mode_;
  Options options_;
  std::uint64_t part_;
  std::uint64_t seed_ = 0;
  std::uint32_t round_ = 0;
  std::vector<std::byte> bytes_{};
};

Result<std::unique_ptr<Contender>, Diagnostic> World::prepare(const Way& way, const Options& o) {
  auto c = std::make_unique<Collectives>(*this, way.rival, o);
  if (auto r = c->warm(Deadline::in(settings_.timeout)); !r) return std::move(r.error());
  return std::unique_ptr<Contender>(std::move(c));
}

}  // namespace

Result<std::unique_ptr<Nccl>, Diagnostic> Nccl::open(Device& d, const Settings& s, Watchdog& dog) {
  const auto ordinals = cuda_ordinals(d, s);
  if (std::set(ordinals.begin(), ordinals.end()).size() != ordinals.size())
    return Diagnostic{.where = "--against",
                      .message = "NCCL needs a GPU of its own for each rank, and some of these share one",
                      .hint = "use at most as many GPUs as the machine has: -g"};
  const auto nccl = [&] {
    const auto bounded = dog.watch("loading NCCL", set_up_limit(s));
    return NcclCalls::load(s.options.collective);
  }();
  if (!nccl) return nccl.error();
  const auto cuda = CudaCalls::load();
  if (!cuda) return cuda.error();
  auto world = std::make_unique<World>(*nccl, s, dog);
  if (auto r = world->make(d, **cuda, ordinals); !r) return std::move(r.error());
  return std::unique_ptr<Nccl>(std::move(world));
}

}  // namespace collectives::perf
