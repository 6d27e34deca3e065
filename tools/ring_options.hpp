// SPDX-License-Identifier: MIT
#pragma once
// Options of verbs that read a ring with its positions and indirect buffers: --rptr, --wptr, --ib.
//
//   add_positions(verb, o->rptr, o->wptr);
//   add_buffers(verb, o->buffers, "file that holds the memory at VA; may be repeated");
//   auto buffers = read_buffers(o->buffers);
#include "ring_text.hpp"
#include "sdma/core/result.hpp"
#include "verb.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sdma::tool {

void add_positions(VerbOptions&, std::optional<std::uint64_t>& rptr, std::optional<std::uint64_t>& wptr);

/// A file whose bytes are the memory at an address.
struct FileAt {
  std::string path;
  std::uint64_t va{};
};
void add_buffers(VerbOptions&, std::vector<FileAt>&, const std::string& doc);
Result<std::vector<IndirectBuffer>, Diagnostic> read_buffers(const std::vector<FileAt>&);

}  // namespace sdma::tool
