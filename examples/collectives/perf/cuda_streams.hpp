#pragma once
// Streams of our own beside those of the CUDA device, to run other libraries' work on: each on one GPU, with words of the host.
//
//   auto cuda = CudaCalls::load();                                  // after the device has been opened
//   auto s = CudaStream::open(**cuda, device, ordinal);
//   s->wait_for(go, 7);   library(s->handle());   s->write(7);      // 7 in `done` when everything before is complete
//   s->await(7, deadline);
//
// Only what these programs need of libcuda is declared here. The streams are created after the device's own, of which there is
// one for each connection of the driver, so they share connections with the first of those, which never wait at a poll.
//
// Memory is that of the device. A context is current only while a Current exists, in that thread.
// One thread uses a stream at a time. Errors: Diagnostics with the driver's text. Streams are never destroyed.
#include "sdma/device/device.hpp"
#include "settings.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace collectives::perf {

struct CudaCalls {
  using Status = int;
  using Context = struct ContextTag*;
  using Stream = struct StreamTag*;

  Status (*error_name)(Status, const char**){};
  Status (*error_string)(Status, const char**){};
  Status (*retain_context)(Context*, int ordinal){};
  Status (*push_context)(Context){};
  Status (*pop_context)(Context*){};
  Status (*stream_create)(Stream*, unsigned flags, int priority){};
  Status (*stream_query)(Stream){};
  Status (*wait_value)(Stream, std::uint64_t at, std::uint32_t, unsigned flags){};
  Status (*write_value)(Stream, std::uint64_t at, std::uint32_t, unsigned flags){};
  Status (*copy)(std::uint64_t dst, std::uint64_t src, std::size_t, Stream){};

  /// Loads nothing new: the device has loaded the library. The calls stay for the life of the process.
  static sdma::Result<const CudaCalls*, sdma::Diagnostic> load();
  std::string describe(Status) const;
};

class CudaStream {
 public:
  /// Makes the GPU's context current in this thread.
  class [[nodiscard]] Current {
   public:
    explicit Current(const CudaStream&) noexcept;
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current();

   private:
    const CudaCalls& calls_;
  };

  static sdma::Result<CudaStream, sdma::Diagnostic> open(const CudaCalls&, sdma::Device&, int ordinal);

  CudaCalls::Stream handle() const noexcept { return stream_; }
  /// The stream continues when the low half of the word is at least `value`.
  sdma::Result<void, sdma::Diagnostic> wait_for(const sdma::Signal&, std::uint32_t value) const;
  /// The stream stores it in `done`.
  sdma::Result<void, sdma::Diagnostic> write(std::uint32_t value) const;
  const sdma::Signal& done() const noexcept { return *done_; }
  /// Until the stream has stored at least `value`, or an error is known.
  sdma::Result<void, sdma::Diagnostic> await(std::uint32_t value, sdma::Deadline) const;

  /// Between memory of the GPU and of the host, through pinned memory; nothing else may be enqueued.
  sdma::Result<void, sdma::Diagnostic> upload(std::uint64_t to, std::span<const std::byte>, sdma::Deadline);
  sdma::Result<void, sdma::Diagnostic> download(std::span<std::byte>, std::uint64_t from, sdma::Deadline);

 private:
  explicit CudaStream(const CudaCalls& c) noexcept : calls_(&c) {}
  sdma::Result<void, sdma::Diagnostic> done_with(const char* call, CudaCalls::Status) const;
  sdma::Result<void, sdma::Diagnostic> state() const;  ///< an error that has stopped the stream
  sdma::Result<void, sdma::Diagnostic> copy(std::uint64_t to, std::uint64_t from, std::size_t, sdma::Deadline);

  const CudaCalls* calls_;
  CudaCalls::Context context_{};
  CudaCalls::Stream stream_{};
  sdma::SignalMemory done_{}, copied_{};
  sdma::Memory bounce_{};
  std::uint32_t copies_ = 0;
};

/// The driver's numbers of the GPUs of the collective.
std::vector<int> cuda_ordinals(const sdma::Device&, const Settings&);

}  // namespace collectives::perf
