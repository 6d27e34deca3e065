// SPDX-License-Identifier: MIT
#pragma once
// Streams of our own beside a device, to run other libraries' work on: each on one GPU, with words of the host.
//
//   auto driver = cuda_driver(device, settings);                    // or hip_driver (hip_streams.hpp)
//   auto s = GpuStream::open(**driver, rank);
//   s->wait_for(go, 7);   library(s->handle());   s->write(7);      // 7 in `done` when everything before is complete
//   s->await(7, deadline);
//
// A StreamDriver is one vendor's calls: the few that these programs need. What it allocates stays for the life of the
// process, because a library does not say when it has stopped using it. A GPU is current only while what
// `current` has returned exists, in that thread.
//
// One thread uses a stream at a time. Errors: Diagnostics with the vendor's text. Streams are never destroyed.
#include "sdma/device/cuda.hpp"
#include "sdma/device/device.hpp"
#include "sdma/device/kfd.hpp"
#include "sdma/sync/wait.hpp"
#include "settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collectives::perf {

inline constexpr std::size_t kBounceBytes = 4 << 20;
inline constexpr auto kSlice = std::chrono::milliseconds(20);

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
  /// Makes a rank's GPU current in this thread, until what it returns is destroyed: then the former one is.
  [[nodiscard]] virtual std::shared_ptr<void> current(std::size_t rank) noexcept = 0;

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

/// Streams of CUDA in the contexts that a CudaDevice uses, after it has been opened; it must outlive them. They share
/// connections with the first of the device's own streams, which never wait at a poll. All memory is the device's.
sdma::Result<std::unique_ptr<StreamDriver>, sdma::Diagnostic> cuda_driver(sdma::Device&, const Settings&);

/// The PCI addresses of the ranks' GPUs, which every vendor's library understands: "0000:06:00.0". Ranks that share a
/// GPU have one address; a device without PCI addresses has empty ones.
inline std::vector<std::string> pci_addresses(const sdma::Device& d, const Settings& s) {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < s.options.gpus; ++i) {
    const auto g = s.gpus.empty() ? i : s.gpus[i].value;
    auto& address = all.emplace_back();
    if (const auto* const cuda = dynamic_cast<const sdma::CudaDevice*>(&d)) address = cuda->gpus()[g].pci;
    if (const auto* const kfd = dynamic_cast<const sdma::KfdDevice*>(&d)) {
      const auto& k = kfd->gpus()[g].kernel;
      address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", k.domain, k.location_id >> 8, k.location_id >> 3 & 31,
                            k.location_id & 7);
    }
  }
  return all;
}

class GpuStream {
 public:
  /// The driver must outlive the stream.
  static sdma::Result<GpuStream, sdma::Diagnostic> open(StreamDriver& d, std::size_t rank) {
    GpuStream s(d, rank);
    const auto here = s.current();
    auto stream = d.create(rank);
    if (!stream) return std::move(stream.error());
    s.stream_ = *stream;
    for (auto* word : {&s.done_, &s.copied_}) {
      auto w = d.word();
      if (!w) return std::move(w.error());
      *word = *w;
    }
    auto bounce = d.pin(kBounceBytes);
    if (!bounce) return std::move(bounce.error());
    s.bounce_ = *bounce;
    return s;
  }

  /// Its GPU is current in this thread for as long as this exists.
  [[nodiscard]] std::shared_ptr<void> current() const { return driver_->current(rank_); }
  StreamDriver::Stream handle() const noexcept { return stream_; }
  std::size_t rank() const noexcept { return rank_; }
  /// The stream continues when the low half of the word is at least `value`.
  sdma::Result<void, sdma::Diagnostic> wait_for(const sdma::Signal& word, std::uint32_t value) const {
    return driver_->wait(stream_, word.low_va(), value);
  }
  /// The stream stores it in `done`.
  sdma::Result<void, sdma::Diagnostic> write(std::uint32_t value) const {
    return driver_->write(stream_, done_.low_va(), value);
  }
  const sdma::Signal& done() const noexcept { return done_; }
  /// Until the stream has stored at least `value`, or an error is known.
  sdma::Result<void, sdma::Diagnostic> await(std::uint32_t value, sdma::Deadline d) const {
    for (;;) {
      if (sdma::wait(done_, sdma::Compare::ge, value, d.within(kSlice))) return {};
      if (auto r = state(); !r) return r;
      if (d.passed())
        return late(fmt::format("the stream has not come to its end by the deadline: its word is {}, not {}",
                                done_.load(), value));
    }
  }

  /// Between memory of the GPU and of the host, through pinned memory; nothing else may be enqueued.
  sdma::Result<void, sdma::Diagnostic> upload(sdma::GpuVa to, std::span<const std::byte> bytes, sdma::Deadline d) {
    for (std::size_t at = 0; at < bytes.size(); at += kBounceBytes) {
      const auto part = bytes.subspan(at, std::min(kBounceBytes, bytes.size() - at));
      std::memcpy(bounce_.host.data(), part.data(), part.size());
      if (auto r = copy(to + at, bounce_.va, part.size(), d); !r) return r;
    }
    return {};
  }
  sdma::Result<void, sdma::Diagnostic> download(std::span<std::byte> bytes, sdma::GpuVa from, sdma::Deadline d) {
    for (std::size_t at = 0; at < bytes.size(); at += kBounceBytes) {
      const auto part = bytes.subspan(at, std::min(kBounceBytes, bytes.size() - at));
      if (auto r = copy(bounce_.va, from + at, part.size(), d); !r) return r;
      std::memcpy(part.data(), bounce_.host.data(), part.size());
    }
    return {};
  }

 private:
  GpuStream(StreamDriver& d, std::size_t rank) noexcept : driver_(&d), rank_(rank) {}
  sdma::Result<void, sdma::Diagnostic> state() const {
    const auto here = current();
    return driver_->state(stream_);
  }
  sdma::Result<void, sdma::Diagnostic> copy(sdma::GpuVa to, sdma::GpuVa from, std::size_t bytes, sdma::Deadline d) {
    const auto here = current();
    if (auto r = driver_->copy(stream_, to, from, bytes); !r) return r;
    if (auto r = driver_->write(stream_, copied_.low_va(), ++copies_); !r) return r;
    if (sdma::wait(copied_, sdma::Compare::ge, copies_, d)) return {};
    if (auto r = driver_->state(stream_); !r) return r;
    return late("a copy has not ended by the deadline");
  }
  sdma::Diagnostic late(std::string message) const { return {.where = driver_->name(), .message = std::move(message)}; }

  StreamDriver* driver_;
  std::size_t rank_;
  StreamDriver::Stream stream_{};
  sdma::Signal done_{}, copied_{};
  StreamDriver::Pinned bounce_{};
  std::uint32_t copies_ = 0;
};

}  // namespace collectives::perf
