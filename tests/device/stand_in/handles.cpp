// SPDX-License-Identifier: MIT
#include "handles.hpp"

#include <map>
#include <mutex>

namespace stand_in {
namespace {

struct Streams {
  std::mutex mutex{};
  std::map<abi::Stream, std::shared_ptr<Stream>> all{};
};
Streams& streams() {
  static auto* const only = new Streams;
  return *only;
}

}  // namespace

abi::Stream add_handle(std::shared_ptr<Stream> s) {
  const auto handle = reinterpret_cast<abi::Stream>(s.get());
  const std::lock_guard lock(streams().mutex);
  streams().all.emplace(handle, std::move(s));
  return handle;
}

Status remove_handle(abi::Stream handle) {
  const std::lock_guard lock(streams().mutex);
  return streams().all.erase(handle) == 1 ? kSuccess : kInvalidHandle;
}

Status find_stream(abi::Stream handle, std::shared_ptr<Stream>* out) {
  Context* current = nullptr;
  if (const auto code = current_context(&current)) return code;
  const std::lock_guard lock(streams().mutex);
  const auto it = streams().all.find(handle);
  if (it == streams().all.end()) return kInvalidHandle;
  *out = it->second;
  return it->second->context.status();
}

Status find_own_stream(abi::Stream handle, std::shared_ptr<Stream>* out) {
  if (const auto code = find_stream(handle, out)) return code;
  Context* current = nullptr;
  if (const auto code = current_context(&current)) return code;
  return &(*out)->context == current ? kSuccess : kInvalidHandle;
}

}  // namespace stand_in
