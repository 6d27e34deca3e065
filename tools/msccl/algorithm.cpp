// SPDX-License-Identifier: MIT
// Reads the XML of an algorithm with expat. A file may come from anywhere: it may not declare a document type, so it
// has no entities, and names no other file; its bytes and its steps are bounded; unknown elements and attributes are
// errors.
#include "algorithm.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>

namespace sdma::msccl {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20, kMostSteps = std::size_t{1} << 16;
constexpr std::size_t kMostOfBlock = 4096;  ///< MSCCL itself takes 256 at most
constexpr std::int64_t kMostChunks = 1 << 20;
constexpr const char* kNested[] = {"algo", "gpu", "tb", "step"};

class XmlReader {
 public:
  explicit XmlReader(const std::string& file) : parser_(XML_ParserCreate(nullptr), XML_ParserFree) { a_.file = file; }

  Result<Algorithm, Wrong> run(std::string_view xml) {
    if (!parser_) return Wrong{.all = {{.where = a_.file, .message = "no memory to read XML"}}};
    if (xml.size() > kMostBytes)
      return Wrong{.all = {{.where = a_.file,
                            .message = fmt::format("the XML has {} bytes, and is read up to {} MiB", xml.size(),
                                                   kMostBytes >> 20)}}};
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(), [](void* me, const char* name, const char** attributes) { of(me).begin(name, attributes); },
        [](void* me, const char*) { --of(me).depth_; });
    XML_SetCharacterDataHandler(parser_.get(), [](void* me, const char* text, int n) {
      const std::string_view t(text, static_cast<std::size_t>(n));
      if (t.find_first_not_of(" \t\r\n") != t.npos)
        of(me).fail("text between the elements", "only elements have a meaning");
    });
    XML_SetStartDoctypeDeclHandler(parser_.get(), [](void* me, const char*, const char*, const char*, int) {
      of(me).fail("a document type is not read", "remove <!DOCTYPE ..>: the XML of MSCCL has none");
    });
    const auto status = XML_Parse(parser_.get(), xml.data(), static_cast<int>(xml.size()), 1);
    if (wrong_) return *std::move(wrong_);
    if (status != XML_STATUS_OK)
      return Wrong{
          .all = {a_.error(
              line(), fmt::format("this is not well-formed XML: {}", XML_ErrorString(XML_GetErrorCode(parser_.get()))),
              "the file may be cut off, or edited by hand: fetch it again")}};
    if (static_cast<std::int64_t>(a_.gpus.size()) != gpus_)
      return Wrong{
          .all = {a_.error(a_.line, fmt::format("ngpus={}, but the file has {} gpu elements", gpus_, a_.gpus.size()))}};
    return std::move(a_);
  }

 private:
  static XmlReader& of(void* me) { return *static_cast<XmlReader*>(me); }
  std::uint32_t line() const { return static_cast<std::uint32_t>(XML_GetCurrentLineNumber(parser_.get())); }

  /// Keeps the first error, and ends the reading.
  void fail(std::string message, std::string hint = {}) {
    if (wrong_) return;
    wrong_ = Wrong{.all = {a_.error(line(), std::move(message), std::move(hint))}};
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  void begin(const std::string& name, const char** attributes) {
    if (wrong_) return;
    const auto depth = depth_++;
    if (depth >= std::size(kNested) || name != kNested[depth])
      return fail(fmt::format("unexpected element '{}'", name.substr(0, kShown)),
                  depth < std::size(kNested)
                      ? fmt::format("expected '{}' here: algo has gpu, gpu has tb, tb has step", kNested[depth])
                      : "a step has no elements");
    element_ = name;
    given_.clear();
    for (; *attributes; attributes += 2) given_.emplace(attributes[0], attributes[1]);
    switch (depth) {
      case 0: algo(); break;
      case 1: gpu(); break;
      case 2: tb(); break;
      default: step();
    }
    if (!given_.empty())
      fail(fmt::format("{} has no attribute '{}'", element_, given_.begin()->first.substr(0, kShown)),
           "what it means is not known here (docs/msccl.md lists the attributes)");
  }

  std::string word(const char* name) {
    const auto at = given_.find(name);
    if (at == given_.end()) return fail(fmt::format("{} needs '{}='", element_, name)), std::string{};
    auto value = std::move(at->second);
    given_.erase(at);
    return value;
  }
  std::int64_t number(const char* name, std::int64_t least, std::int64_t most) {
    const auto text = word(name);
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (!wrong_ && (error != std::errc{} || end != text.data() + text.size() || n < least || n > most))
      fail(fmt::format("'{}={}' is not a number from {} to {}", name, text.substr(0, kShown), least, most));
    return n;
  }
  bool has(const char* name) const { return given_.count(name) != 0; }
  /// Numbered from 0, in order: others are named by their numbers.
  void in_order(const char* name, std::size_t expected) {
    const auto n = number(name, 0, kMostChunks);
    if (!wrong_ && static_cast<std::size_t>(n) != expected)
      fail(fmt::format("{} {}={} follows {} of them", element_, name, n, expected),
           "they are numbered from 0, in the order of the file");
  }

  void algo() {
    a_.line = line();
    a_.name = word("name");
    (void)word("proto");
    a_.channels = number("nchannels", 1, kMostChunks);
    a_.chunks = number("nchunksperloop", 1, kMostChunks);
    gpus_ = number("ngpus", 1, kMostChunks);
    a_.collective = word("coll");
    // Files of before these attributes are called out of place.
    a_.in_place = has("inplace") && number("inplace", 0, 1) == 1;
    a_.out_of_place = !has("outofplace") || number("outofplace", 0, 1) == 1;
    for (const auto* bytes : {"minBytes", "maxBytes"})
      if (has(bytes)) number(bytes, 0, std::int64_t{1} << 62);
    if (!wrong_ && gpus_ > Schedule::kMostGpus)
      fail(fmt::format("a schedule has at most {} GPUs, and this has {}", Schedule::kMostGpus, gpus_));
    if (!wrong_ && !a_.in_place && !a_.out_of_place)
      fail("inplace=0 and outofplace=0: no call may use this algorithm", "set one of them to 1");
  }
  void gpu() {
    in_order("id", a_.gpus.size());
    auto& g = a_.gpus.emplace_back();
    g.line = line();
    g.in = number("i_chunks", 0, kMostChunks);
    g.out = number("o_chunks", 0, kMostChunks);
    g.scratch = number("s_chunks", 0, kMostChunks);
    if (!wrong_ && static_cast<std::int64_t>(a_.gpus.size()) > gpus_)
      fail(fmt::format("this is GPU {} of ngpus={}", a_.gpus.size(), gpus_));
  }
  void tb() {
    auto& blocks = a_.gpus.back().blocks;
    in_order("id", blocks.size());
    auto& b = blocks.emplace_back();
    b.line = line();
    const auto self = static_cast<std::int64_t>(a_.gpus.size()) - 1;
    for (auto [name, peer] : {std::pair("send", &b.send), {"recv", &b.receive}})
      if (*peer = number(name, -1, gpus_ - 1); !wrong_ && *peer == self)
        fail(fmt::format("'{}={}' is the GPU of this tb", name, self), "a copy within a GPU is a cpy");
    b.channel = number("chan", 0, a_.channels - 1);
  }
  void step() {
    auto& steps = a_.gpus.back().blocks.back().steps;
    in_order("s", steps.size());
    auto& s = steps.emplace_back();
    s.line = line();
    const auto type = word("type");
    s.type = step_type(type);
    if (!wrong_ && !s.type && type != "nop")
      fail(fmt::format("'{}' is not a type of a step", type.substr(0, kShown)),
           "the types: s r cpy re rcs rrc rrs rrcs nop");
    for (auto [buffer, offset, place] : {std::tuple("srcbuf", "srcoff", &s.source), {"dstbuf", "dstoff", &s.target}}) {
      const auto name = word(buffer);
      if (!wrong_ && name != "i" && name != "o" && name != "s")
        fail(fmt::format("'{}={}' is not a buffer: i, o or s", buffer, name.substr(0, kShown)));
      *place = {name.empty() ? 'i' : name[0], number(offset, -1, kMostChunks)};
    }
    s.count = number("cnt", s.type ? 1 : 0, kMostChunks);
    s.dep_block = number("depid", -1, kMostChunks);
    s.dep_step = number("deps", -1, kMostChunks);
    s.publishes = number("hasdep", 0, 1) == 1;
    a_.gpus.back().blocks.back().largest = std::max(a_.gpus.back().blocks.back().largest, s.count);
    if (++steps_ > kMostSteps) fail(fmt::format("more than {} steps are not read", kMostSteps));
    if (steps.size() > kMostOfBlock) fail(fmt::format("more than {} steps of one tb are not read", kMostOfBlock));
  }

  static constexpr std::size_t kShown = 40;  ///< of a word of the file
  std::unique_ptr<std::remove_pointer_t<XML_Parser>, void (*)(XML_Parser)> parser_;
  Algorithm a_;
  std::optional<Wrong> wrong_;
  std::size_t depth_ = 0, steps_ = 0;
  std::int64_t gpus_ = 0;
  std::string element_;
  std::map<std::string, std::string> given_;
};

}  // namespace

Result<Algorithm, Wrong> read_algorithm(std::string_view xml, const std::string& file) {
  return XmlReader{file}.run(xml);
}

}  // namespace sdma::msccl
