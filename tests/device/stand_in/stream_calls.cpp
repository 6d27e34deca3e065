// SPDX-License-Identifier: MIT
// Streams, and the words that they wait for and write.
#include "calls.hpp"
#include "handles.hpp"
#include "waits.hpp"
#include "word.hpp"

namespace stand_in {
namespace {

Status create_stream(abi::Stream* out, unsigned flags, int /*priority*/) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  if (!out || flags > abi::kNonBlocking) return kInvalidValue;
  *out = add_handle(c->make_stream());
  return kSuccess;
}

/// The commands keep the stream until they are finished.
Status destroy(abi::Stream handle) {
  std::shared_ptr<Stream> s;
  const auto code = find_stream(handle, &s);
  if (s) (void)remove_handle(handle);
  return code;
}

Status query(abi::Stream handle) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_stream(handle, &s)) return code;
  if (s->connection.captures(*s)) return kCaptureUnsupported;
  const bool idle = s->connection.idle(*s);
  // The command that killed the context was finished afterwards.
  if (const auto code = s->context.status()) return code;
  return idle ? kSuccess : kNotReady;
}

bool is_word(Pointer at) { return at % sizeof(std::uint32_t) == 0 && where(at) != Where::pageable; }

Status wait_value(abi::Stream handle, Pointer at, std::uint32_t value, unsigned flags) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_own_stream(handle, &s)) return code;
  if (!is_word(at) || flags > abi::kWaitEqual) return kInvalidValue;
  const auto wait = [=](Stream& here) { return Waits::get().wait(here.context, at, value, flags == abi::kWaitEqual); };
  return s->connection.enqueue(s, wait, true);
}

Status write_value(abi::Stream handle, Pointer at, std::uint32_t value, unsigned flags) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_own_stream(handle, &s)) return code;
  if (!is_word(at) || flags != 0) return kInvalidValue;
  return s->connection.enqueue(s, [=](Stream& here) {
    const auto code = with_word<std::uint32_t>(
        at, here.context.device(), Use::write,
        [&](std::atomic_ref<std::uint32_t> word) { word.store(value, std::memory_order_release); });
    Waits::get().nudge();
    return code;
  });
}

/// All of them, or none.
Status batch_of_words(abi::Stream handle, unsigned count, const abi::WordOperation* all, unsigned flags) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_own_stream(handle, &s)) return code;
  if (count > abi::kMostWordOperations || (count != 0 && !all) || flags != 0) return kInvalidValue;
  for (unsigned i = 0; i < count; ++i) {
    const auto& o = all[i];
    const bool wait = o.operation == abi::kWaitOperation;
    if ((!wait && o.operation != abi::kWriteOperation) || !is_word(o.address)) return kInvalidValue;
    if (o.flags > (wait ? abi::kWaitEqual : 0)) return kInvalidValue;
  }
  for (unsigned i = 0; i < count; ++i) {
    const auto& o = all[i];
    const auto value = static_cast<std::uint32_t>(o.value);
    const bool wait = o.operation == abi::kWaitOperation;
    if (const auto code =
            wait ? wait_value(handle, o.address, value, o.flags) : write_value(handle, o.address, value, o.flags))
      return code;
  }
  return kSuccess;
}

}  // namespace

std::span<const Entry> stream_calls() {
  static const Entry all[] = {
      {"cuStreamCreateWithPriority", function<"cuStreamCreateWithPriority", create_stream>()},
      {"cuStreamDestroy", function<"cuStreamDestroy", destroy>()},
      {"cuStreamQuery", function<"cuStreamQuery", query>()},
      {"cuStreamWaitValue32", function<"cuStreamWaitValue32", wait_value>()},
      {"cuStreamWriteValue32", function<"cuStreamWriteValue32", write_value>()},
      {"cuStreamBatchMemOp", function<"cuStreamBatchMemOp", batch_of_words>()},
  };
  return all;
}

}  // namespace stand_in
