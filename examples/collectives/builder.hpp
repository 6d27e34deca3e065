// SPDX-License-Identifier: MIT
#pragma once
// Builds the command groups of a collective, one after another. Internal:
// each collective's file says which GPU sends which bytes to which peer.
//
//   Builder b{options};
//   b.send(i, {{.peer = 1, .from = ..., .to = ..., .bytes = n}, ...});   pcpy, bcst, b2b: as many groups as that takes
//   b.exchange(o, p, a, b, bytes_a, bytes_b);                            swap: one group
//   return std::move(b).finish();                                        host thread, expectations, counts, notes
#include "plan.hpp"

#include <map>
#include <span>

namespace collectives {

/// Bytes that one engine of a GPU moves; `peer` selects the engine.
struct Transfer {
  std::uint32_t peer{};
  sdma::GpuVa from{}, to{};
  std::uint64_t bytes{};
};

class Builder {
 public:
  explicit Builder(const Options&);

  const Options& options() const noexcept { return plan_.options; }
  Plan& plan() noexcept { return plan_; }
  /// Adds one buffer per GPU, with `bytes` of data after its offset. Returns where the data of each begins.
  std::vector<sdma::GpuVa> buffers(const char* name, std::uint64_t bytes);

  /// Uses the options' variant: pcpy, bcst or b2b. Transfers of no bytes are omitted.
  void send(std::uint32_t gpu, std::vector<Transfer>);
  /// Exchanges `a` of `gpu` with `b` of `peer`: `sent` bytes go from a to b, `received` from b to a.
  void exchange(std::uint32_t gpu, std::uint32_t peer, sdma::GpuVa a, sdma::GpuVa b, std::uint64_t sent,
                std::uint64_t received);
  /// Records that `bytes` bytes move from `from` of `src` to `to` of `dst`.
  void moved(std::uint32_t src, std::uint32_t dst, sdma::GpuVa from, sdma::GpuVa to, std::uint64_t bytes);

  Plan finish() &&;

 private:
  using Queue = sdma::Schedule::Queue;
  Queue& begin_group(std::uint32_t gpu, std::uint32_t peer);
  void copy(Queue&, const Transfer&);
  void end_group(Queue&);
  void each_alone(std::uint32_t gpu, std::span<const Transfer>);
  void in_pairs(std::uint32_t gpu, std::vector<Transfer>);
  void back_to_back(std::uint32_t gpu, std::span<const Transfer>);
  void exchange_by_copies(Queue&, std::uint32_t gpu, sdma::GpuVa a, sdma::GpuVa b, std::span<const Part>);
  void barrier(Queue&, sdma::GpuVa word, sdma::EpochValue);
  /// True if the alignment of the buffers guarantees that both addresses are equal modulo `n`.
  bool alike(sdma::GpuVa, sdma::GpuVa, std::uint64_t n) const noexcept;
  void fell_back(const std::string& reason, const std::string& example);
  void host();
  void expectations();

  Plan plan_;
  sdma::GpuVa go_{}, done_{};
  std::vector<std::uint32_t> groups_;                                      // one per GPU
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons_;  // with the GPUs that they affect
};

/// Each function is in the file of its name.
void all_gather(Builder&);
void all_to_all(Builder&);
void rooted(Builder&);  ///< broadcast, scatter, gather

}  // namespace collectives
