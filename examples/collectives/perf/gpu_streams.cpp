// SPDX-License-Identifier: MIT
#include "gpu_streams.hpp"

#include "sdma/sync/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace collectives::perf {

using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kBounceBytes = 4 << 20;
constexpr auto kSlice = 20ms;

}  // namespace

Result<GpuStream, Diagnostic> GpuStream::open(StreamDriver& d, std::size_t rank) {
  GpuStream s(d, rank);
  const Current here(s);
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

Diagnostic GpuStream::late(std::string message) const {
  return {.where = driver_->name(), .message = std::move(message)};
}

Result<void, Diagnostic> GpuStream::wait_for(const Signal& word, std::uint32_t value) const {
  return driver_->wait(stream_, word.low(), value);
}

Result<void, Diagnostic> GpuStream::write(std::uint32_t value) const {
  return driver_->write(stream_, done_.low(), value);
}

Result<void, Diagnostic> GpuStream::state() const {
  const Current here(*this);
  return driver_->state(stream_);
}

Result<void, Diagnostic> GpuStream::await(std::uint32_t value, Deadline d) const {
  for (;;) {
    const auto slice = Deadline::in(kSlice);
    if (sdma::wait(done_, Compare::ge, value, slice.at < d.at ? slice : d)) return {};
    if (auto r = state(); !r) return r;
    if (d.passed())
      return late(fmt::format("the stream has not come to its end by the deadline: its word is {}, not {}",
                              done_.load(), value));
  }
}

Result<void, Diagnostic> GpuStream::copy(GpuVa to, GpuVa from, std::size_t bytes, Deadline d) {
  const Current here(*this);
  if (auto r = driver_->copy(stream_, to, from, bytes); !r) return r;
  if (auto r = driver_->write(stream_, copied_.low(), ++copies_); !r) return r;
  if (sdma::wait(copied_, Compare::ge, copies_, d)) return {};
  if (auto r = driver_->state(stream_); !r) return r;
  return late("a copy has not ended by the deadline");
}

Result<void, Diagnostic> GpuStream::upload(GpuVa to, std::span<const std::byte> bytes, Deadline d) {
  for (std::size_t at = 0; at < bytes.size(); at += kBounceBytes) {
    const auto part = bytes.subspan(at, std::min(kBounceBytes, bytes.size() - at));
    std::memcpy(bounce_.host.data(), part.data(), part.size());
    if (auto r = copy(to + at, bounce_.va, part.size(), d); !r) return r;
  }
  return {};
}

Result<void, Diagnostic> GpuStream::download(std::span<std::byte> bytes, GpuVa from, Deadline d) {
  for (std::size_t at = 0; at < bytes.size(); at += kBounceBytes) {
    const auto part = bytes.subspan(at, std::min(kBounceBytes, bytes.size() - at));
    if (auto r = copy(bounce_.va, from + at, part.size(), d); !r) return r;
    std::memcpy(part.data(), bounce_.host.data(), part.size());
  }
  return {};
}

}  // namespace collectives::perf
