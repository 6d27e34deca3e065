#include "recording.hpp"

#include "output.hpp"
#include "sdma/trace/write.hpp"
#include "verb.hpp"

namespace sdma::tool {

int save_trace(const trace::Trace& t, const std::string& path, trace::Form form) {
  Output out{path};
  out.text() = trace::to_string(t, form, path);
  return out.close() ? kOk : out.exit_code();
}

}  // namespace sdma::tool
