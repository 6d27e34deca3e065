// SPDX-License-Identifier: MIT
#pragma once
// The commands of one stream: copies (in batches where that helps), written values, waits, kernels; and those finished.
//
//   Commands c(gpu, parts);
//   if (!c.room(3)) return ...;                      // three more commands would exceed the window
//   c.copy(dst, src, bytes);  c.write(va, 1);        // never block; an error stops the GPU
//   c.report();                                      // everything issued so far will be seen as finished when it is
//   c.finished(c.issued());
//
// A copy is held back until a command of another kind, a copy that overlaps it, a full batch, or `send`: so runs of
// copies become one call. `send` before rptr moves. A single copy goes out as a copy: a batch of one costs more
// (docs/silicon.md).
//
// One thread at a time, with the GPU's context current. Nothing allocates after construction. Internal. Errors: those
// of the GPU (PhysicalGpu::error); every function then does nothing.
#include "gpu.hpp"
#include "sdma/core/units.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace sdma::inline v0::detail::cuda {

struct CommandParts {
  Stream stream{};
  std::uint32_t* progress{};  ///< pinned, zero
  std::byte* payload{};       ///< pinned: kPayloadBytes
  GpuVa staging{};            ///< GPU memory: kStagingBytes
  bool batches = true;
};

class Commands {
 public:
  /// A stream holds 1,020 commands; one more call blocks (measured on H100, driver 580).
  static constexpr std::uint32_t kWindow = 512, kReport = 64, kBatch = 64;
  static constexpr std::uint64_t kStagingBytes = 8u << 20, kPayloadBytes = 64u << 10;

  Commands(PhysicalGpu& g, const CommandParts& p) noexcept : gpu_(g), parts_(p) {}

  const CommandParts& parts() const noexcept { return parts_; }
  /// May `n` more commands be issued now? Reports, so that it will be true at some time.
  bool room(std::uint32_t n) noexcept;
  std::uint64_t issued() const noexcept { return issued_ + held_; }
  /// Are the first `n` commands complete? Only what was reported is known to be.
  bool finished(std::uint64_t n) noexcept { return progress() >= n; }
  /// How many commands are known to be complete.
  std::uint64_t progress() noexcept;
  /// Asks the stream to say so when everything that has been issued is complete.
  void report() noexcept;

  void copy(GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept;
  /// Not held back, and never a part of a batch.
  void copy_alone(GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept;
  void copy_2d(const Copy2D&) noexcept;
  void fill_8(GpuVa, std::uint8_t, std::uint64_t count) noexcept;
  void fill_16(GpuVa, std::uint16_t, std::uint64_t count) noexcept;
  void fill_32(GpuVa, std::uint32_t, std::uint64_t count) noexcept;
  void clear_2d(GpuVa, std::uint64_t pitch, std::uint64_t width, std::uint64_t height) noexcept;
  void write(GpuVa, std::uint32_t) noexcept;
  void wait(GpuVa, std::uint32_t, unsigned how) noexcept;
  /// A kernel of one thread with these 64-bit arguments.
  void launch(Function, std::array<std::uint64_t, 3> arguments) noexcept;

  /// Issues the copies that are held back.
  void send() noexcept;
  /// Room for `bytes` of payload in pinned memory, until the commands that are issued before `payload_used`; null: come
  /// back when earlier commands are complete.
  std::byte* payload(std::uint64_t bytes) noexcept;
  void payload_used() noexcept { payload_until_ = issued(); }
  /// Has the stream ended all of its commands? An error counts as not.
  bool idle() noexcept;

 private:
  void count(Status s) noexcept;
  bool overlaps_held(Pointer dst, Pointer src, std::size_t bytes) const noexcept;

  PhysicalGpu& gpu_;
  const CommandParts parts_;
  std::uint64_t issued_ = 0, reported_ = 0, finished_ = 0;
  std::uint64_t payload_taken_ = 0, payload_until_ = 0;  ///< the command after which the payload is free
  std::uint32_t held_ = 0;
  std::array<Pointer, kBatch> dst_{}, src_{};
  std::array<std::size_t, kBatch> bytes_{};
};

}  // namespace sdma::inline v0::detail::cuda
