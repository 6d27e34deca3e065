// SPDX-License-Identifier: MIT
#include "ring_options.hpp"

#include "input.hpp"

namespace sdma::tool {
namespace {

/// Bytes, or dwords with the suffix dw.
std::optional<std::uint64_t> parse_position(const std::string& text) {
  const bool dwords = text.ends_with("dw");
  const auto n = parse_size(dwords ? text.substr(0, text.size() - 2) : text);
  return n && dwords ? std::optional(*n * 4) : n;
}
void add_position(VerbOptions& verb, const std::string& name, std::optional<std::uint64_t>& value,
                  const std::string& doc) {
  add_parsed(verb, name, value, parse_position, "a position, such as 0x40 (bytes) or 16dw (dwords)", doc).type("N");
}

}  // namespace

void add_positions(VerbOptions& verb, std::optional<std::uint64_t>& rptr, std::optional<std::uint64_t>& wptr) {
  add_position(verb, "--rptr", rptr,
               "where the engine stands, in bytes, or in dwords with dw: 0x40, 16dw (default: what FILE says)");
  add_position(verb, "--wptr", wptr, "where the producer stands, as --rptr");
}

void add_buffers(VerbOptions& verb, std::vector<FileAt>& buffers, const std::string& doc) {
  const auto take = [&buffers](const std::string& given) -> std::string {
    const auto at = given.rfind('@');
    const auto va = at == std::string::npos ? std::nullopt : parse_size(given.substr(at + 1));
    if (!va || at == 0) return "'" + given + "' is not FILE@VA, such as ib.bin@0x7f0000001000";
    buffers.push_back({given.substr(0, at), *va});
    return "";
  };
  verb.repeated("--ib", take, doc).type("FILE@VA");
}

Result<std::vector<IndirectBuffer>, Diagnostic> read_buffers(const std::vector<FileAt>& files) {
  std::vector<IndirectBuffer> out;
  for (const auto& f : files) {
    auto in = Input::open({.path = f.path});
    if (!in) return std::move(in.error());
    auto ring = in->ring();
    if (!ring) return std::move(ring.error());
    out.push_back({shown(f.path), f.va, std::move(ring->dwords)});
  }
  return out;
}

}  // namespace sdma::tool
