// SPDX-License-Identifier: MIT
#pragma once
// Executes requests on a device, and checks every block.
//
//   Mover m{*device, options};
//   const auto times = m.median_of({.way = Way::b2b, .engines = 2, .blocks = 256, .bytes = 16 << 10});
//   printf("%lu bytes wrong\n", m.wrong());
//
// Each round shuffles the pool, fills the request's blocks there, fetches them, checks them, changes them on the GPU,
// returns them, and checks them in the pool. Only the copies are timed. Bytes outside the request's blocks are neither
// filled nor checked.
//
// A Mover belongs to one thread. The device must outlive it, and the GPU must have the largest number of engines in the
// options. Errors end the program with a message and exit code 1.
#include "examples/support.hpp"
#include "options.hpp"

#include <deque>
#include <map>
#include <random>
#include <span>

namespace collectives::kv {

class Mover {
 public:
  Mover(sdma::Device&, const Options&);

  Times median_of(const Request&);
  std::uint64_t wrong() const noexcept { return wrong_; }
  /// How many blocks each queue has copied, in all rounds: "engine 0: 528, 264; engine 1: 528, 264".
  std::string work() const;

 private:
  struct Block {
    sdma::GpuVa from{}, to{};
  };
  /// A queue, and the word that counts its groups.
  class Lane {
   public:
    Lane(sdma::Device&, sdma::GpuId, sdma::EngineId, std::uint64_t ring_bytes);
    /// One group; with `go`, after a poll for `value` there.
    void publish(std::span<const Block>, std::uint64_t bytes, const sdma::Signal* go, std::uint32_t value);
    void reach(const sdma::Device&);
    std::uint64_t blocks() const noexcept { return blocks_; }

   private:
    sdma::SignalMemory done_;
    bool atomics_;
    sdma::Queue queue_;
    sdma::Ring<> ring_;
    std::uint32_t groups_ = 0;
    std::uint64_t blocks_ = 0;
  };

  /// The first lanes of each engine, in the order of the request's lanes.
  std::vector<Lane*> lanes(const Request&, sdma::HostDirection);
  /// Seconds.
  double move(const Request&, sdma::HostDirection, std::span<const Block>);
  Times once(const Request&, std::uint64_t round);

  sdma::Device& device_;
  Options options_;
  sdma::Memory pool_, kv_;
  sdma::SignalMemory go_;
  std::uint32_t released_ = 0;
  std::map<sdma::EngineId, std::deque<Lane>> lanes_;
  std::mt19937_64 random_{1};
  std::uint64_t wrong_ = 0;
};

}  // namespace collectives::kv
