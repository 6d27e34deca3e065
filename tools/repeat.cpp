// SPDX-License-Identifier: MIT
#include "repeat.hpp"

#include "json/exit.hpp"
#include "json/json.hpp"
#include "output.hpp"
#include "sdma/core/version.hpp"

#include <fmt/format.h>

namespace sdma::tool {

int repeat(const std::string& path, std::string_view text, bool json) {
  const auto b = read_bundle(text, path);
  if (!b) return report(b.error()), kInput;
  const auto now = repeat_bundle(*b);
  const auto version = std::string(sdma::version().string);
  const auto ns = [](const Claims& c) {
    return c.prediction.empty() ? json::Json() : json::Json(c.prediction.front().second);
  };
  std::string out;
  if (json) {
    out = json::document({{"bundle", path},
                          {"made_by", b->version},
                          {"version", version},
                          {"verdict", {{"was", b->claims.verdict}, {"is", now.claims.verdict}}},
                          {"ns", {{"was", ns(b->claims)}, {"is", ns(now.claims)}}},
                          {"differences", now.differences}});
  } else {
    for (const auto& d : now.differences) out += fmt::format("{}: {}\n", path, d);
    if (now.differences.empty())
      out = fmt::format("{}: as it says: {}, {}\n", path, now.claims.verdict,
                        time_text(now.claims.prediction.front().second));
    if (b->version != version)
      out += fmt::format("{}: made by version {}, repeated by {}\n", path, b->version, version);
  }
  const auto code = write_text("-", std::move(out));
  return code != kOk || now.differences.empty() ? code : static_cast<int>(kRefuted);
}

}  // namespace sdma::tool
