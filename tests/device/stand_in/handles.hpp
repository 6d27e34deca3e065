// SPDX-License-Identifier: MIT
#pragma once
// Stream handles. A program that uses one after it destroyed it
// gets kInvalidHandle, or nothing else here. Any thread may use it.
#include "stream.hpp"

namespace stand_in {

abi::Stream add_handle(std::shared_ptr<Stream>);
Status remove_handle(abi::Stream);

/// What a call on a stream begins with: the calling thread has a context, the stream exists, and no context is dead.
Status find_stream(abi::Stream, std::shared_ptr<Stream>* out);
/// The same for calls that need the stream's own context to be current.
Status find_own_stream(abi::Stream, std::shared_ptr<Stream>* out);

}  // namespace stand_in
