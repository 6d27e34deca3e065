// SPDX-License-Identifier: MIT
#pragma once
// Streams of our own beside a device, to run other libraries' work on: each on one GPU, with words of the host.
//
//   auto driver = cuda_driver(device, settings);                    // or hip_driver: cuda_streams.hpp, hip_streams.hpp
//   auto s = GpuStream::open(**driver, rank);
//   s->wait_for(go, 7);   library(s->handle());   s->write(7);      // 7 in `done` when everything before is complete
//   s->await(7, deadline);
//
// A StreamDriver is one vendor's calls: the few that these programs need. What it allocates stays for the life of the
// process, because a library does not say when it has stopped using it. A GPU is current only while a Current exists,
// in that thread.
//
// One thread uses a stream at a time. Errors: Diagnostics with the vendor's text. Streams are never destroyed.
#include "sdma/device/device.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace collectives::perf {

/// CUDA's or HIP's calls, for the GPUs of one collective.
class StreamDriver {
 public:
  using Stream = void*;
  /// Memory of the host that its GPUs see.
  struct Pinned {
    std::span<std::byte> host{};
    sdma::GpuVa va{};
  };
  virtual ~StreamDriver() = default;

  /// "CUDA" or "HIP"
  virtual const char* name() const noexcept = 0;
  virtual std::size_t ranks() const noexcept = 0;
  /// The vendor's number of a rank's GPU; ranks may share one.
  virtual int ordinal(std::size_t rank) const noexcept = 0;

  /// Makes a rank's GPU current in this thread. Returns what `leave` takes, which makes the former one current again.
  virtual int enter(std::size_t rank) noexcept = 0;
  virtual void leave(int former) noexcept = 0;

  // Everything below is called while the rank's GPU is current.
  virtual sdma::Result<Stream, sdma::Diagnostic> create(std::size_t rank) = 0;
  /// The stream continues when the 32-bit word is at least `value`.
  virtual sdma::Result<void, sdma::Diagnostic> wait(Stream, sdma::GpuVa word, std::uint32_t value) = 0;
  virtual sdma::Result<void, sdma::Diagnostic> write(Stream, sdma::GpuVa word, std::uint32_t value) = 0;
  virtual sdma::Result<void, sdma::Diagnostic> copy(Stream, sdma::GpuVa to, sdma::GpuVa from, std::size_t bytes) = 0;
  /// An error that has stopped the stream.
  virtual sdma::Result<void, sdma::Diagnostic> state(Stream) = 0;
  virtual sdma::Result<Pinned, sdma::Diagnostic> pin(std::size_t bytes) = 0;
  /// A word of the host, at 0.
  virtual sdma::Result<sdma::Signal, sdma::Diagnostic> word() = 0;
  /// Memory of the rank's GPU.
  virtual sdma::Result<sdma::GpuVa, sdma::Diagnostic> allocate(std::size_t rank, std::size_t bytes) = 0;

 protected:
  StreamDriver() = default;
  StreamDriver(const StreamDriver&) = delete;
  StreamDriver& operator=(const StreamDriver&) = delete;
};

class GpuStream {
 public:
  /// Makes the GPU current in this thread.
  class [[nodiscard]] Current {
   public:
    explicit Current(const GpuStream& s) noexcept : driver_(*s.driver_), former_(driver_.enter(s.rank_)) {}
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() { driver_.leave(former_); }

   private:
    StreamDriver& driver_;
    int former_;
  };

  /// The driver must outlive the stream.
  static sdma::Result<GpuStream, sdma::Diagnostic> open(StreamDriver&, std::size_t rank);

  StreamDriver::Stream handle() const noexcept { return stream_; }
  std::size_t rank() const noexcept { return rank_; }
  /// The stream continues when the low half of the word is at least `value`.
  sdma::Result<void, sdma::Diagnostic> wait_for(const sdma::Signal&, std::uint32_t value) const;
  /// The stream stores it in `done`.
  sdma::Result<void, sdma::Diagnostic> write(std::uint32_t value) const;
  const sdma::Signal& done() const noexcept { return done_; }
  /// Until the stream has stored at least `value`, or an error is known.
  sdma::Result<void, sdma::Diagnostic> await(std::uint32_t value, sdma::Deadline) const;

  /// Between memory of the GPU and of the host, through pinned memory; nothing else may be enqueued.
  sdma::Result<void, sdma::Diagnostic> upload(sdma::GpuVa to, std::span<const std::byte>, sdma::Deadline);
  sdma::Result<void, sdma::Diagnostic> download(std::span<std::byte>, sdma::GpuVa from, sdma::Deadline);

 private:
  GpuStream(StreamDriver& d, std::size_t rank) noexcept : driver_(&d), rank_(rank) {}
  sdma::Result<void, sdma::Diagnostic> state() const;
  sdma::Result<void, sdma::Diagnostic> copy(sdma::GpuVa to, sdma::GpuVa from, std::size_t, sdma::Deadline);
  sdma::Diagnostic late(std::string message) const;

  StreamDriver* driver_;
  std::size_t rank_;
  StreamDriver::Stream stream_{};
  sdma::Signal done_{}, copied_{};
  StreamDriver::Pinned bounce_{};
  std::uint32_t copies_ = 0;
};

}  // namespace collectives::perf
