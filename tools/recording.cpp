#include "recording.hpp"

#include "output.hpp"
#include "sdma/trace/write.hpp"
#include "verb.hpp"

namespace sdma::tool {

int save_trace(const trace::Trace& t, const std::string& path) {
  Output out{path};
  out.text() = path.ends_with(".jsonl") ? trace::to_json_lines(t) : trace::to_perfetto(t);
  return out.close() ? kOk : out.exit_code();
}

}  // namespace sdma::tool
