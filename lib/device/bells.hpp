// SPDX-License-Identifier: MIT
#pragma once
// Where the hosts and engines of one software device sleep: words in pages that other processes map, too. So a process
// that stores to another's memory wakes what waits there.
//
//   Bells mine;                                  // mine.hosts().sleep_unless(...), mine.engine(gpu, engine).sleep(...)
//   mine.set_waiting(gpu, engine, true);         // this engine polls: any store may be what it waits for
//   offer(mine.file(), Bells::kBytes) ... Bells of_owner(fd);
//   of_owner.ring([&](gpu, engine) { of_owner.engine(gpu, engine).wake(); });     // after a store
//
// A sleeper registers (sequentially consistent) before it loads its word once more; who stores has a fence before it
// asks for sleepers. One who maps the pages of a process that has ended wakes nothing. Any thread. Internal. Errors:
// without pages, the constructor throws std::bad_alloc as a container does, or `of_owner` is empty.
#include "../core/descriptor.hpp"
#include "../engine/park.hpp"
#include "share_server.hpp"

#include <sys/mman.h>
#include <array>
#include <bit>
#include <new>

namespace sdma { inline namespace v0_3 { namespace detail {

class Bells {
 public:
  using Park = BasicParking<0>;
  static constexpr std::size_t kGpus = 64, kEngines = 64;

  /// New ones. At the limit of descriptors, no other process can map them.
  Bells() : file_(new_file()) {
    map(file_ ? file_.get() : -1);
    if (!page_) throw std::bad_alloc();
  }
  /// Those of another process.
  explicit Bells(const Descriptor& file) { map(file.get()); }
  ~Bells() {
    if (page_) munmap(page_, sizeof(Page));
  }
  Bells(const Bells&) = delete;
  Bells& operator=(const Bells&) = delete;
  explicit operator bool() const noexcept { return page_ != nullptr; }

  int file() const noexcept { return file_ ? file_.get() : -1; }
  static constexpr std::size_t bytes() noexcept { return sizeof(Page); }
  Park& hosts() const noexcept { return page_->hosts; }
  Park& engine(std::size_t gpu, std::size_t engine) const noexcept { return page_->engines[gpu][engine]; }

  void set_waiting(std::size_t gpu, std::size_t engine, bool waiting) const noexcept {
    const auto bit = std::uint64_t{1} << engine;
    if (waiting) {
      page_->waiting_engines.fetch_add(1, std::memory_order_seq_cst);
      page_->waiting[gpu].fetch_or(bit, std::memory_order_seq_cst);
    } else {
      page_->waiting[gpu].fetch_and(~bit, std::memory_order_seq_cst);
      page_->waiting_engines.fetch_sub(1, std::memory_order_seq_cst);
    }
  }
  /// Wakes sleeping hosts, and calls `wake(gpu, engine)` for each engine that waits. A fence precedes it.
  template <class F> void ring(std::size_t gpus, F wake) const noexcept {
    if (hosts().has_sleepers()) hosts().wake();
    if (page_->waiting_engines.load(std::memory_order_seq_cst) == 0) return;
    for (std::size_t g = 0; g < gpus; ++g)
      for (auto mask = page_->waiting[g].load(std::memory_order_seq_cst); mask != 0; mask &= mask - 1)
        wake(g, static_cast<std::size_t>(std::countr_zero(mask)));
  }

 private:
  struct Page {
    Park hosts;
    std::atomic<std::uint32_t> waiting_engines;
    std::array<std::atomic<std::uint64_t>, kGpus> waiting;  ///< bit n: engine n has pending polls
    std::array<std::array<Park, kEngines>, kGpus> engines;
  };

  static Descriptor new_file() {
    auto f = shareable_pages("", sizeof(Page));
    return f ? std::move(*f) : Descriptor();
  }
  void map(int file) noexcept {
    auto* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE,
                          file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file, 0);
    if (at != MAP_FAILED) page_ = static_cast<Page*>(at);  // zeros are the initial state
  }

  Descriptor file_;
  Page* page_ = nullptr;
};

}}}  // namespace sdma::v0_3::detail
