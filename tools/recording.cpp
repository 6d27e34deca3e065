// SPDX-License-Identifier: MIT
#include "recording.hpp"

#include "output.hpp"
#include "report.hpp"
#include "sdma/trace/form.hpp"
#include "sdma/trace/lines.hpp"
#include "verb.hpp"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

/// Draws one recording. The picture of the first process has the name that the user chose; any other gets a new name.
int draw_one(const fs::path& recording, std::string picture, const std::string& suffix) {
  const auto text = read_file(recording.string());
  if (!text) return report(text.error()), kInput;
  // The recording is empty if no device was opened, and has no end if the program was killed.
  const auto t = trace::LinesReader(recording.string()).feed(*text);
  if (!t) return report(t.error()), kInput;
  const auto form = trace::form_of(picture);
  if (!suffix.empty()) {
    const auto made = create_fresh(picture + suffix);
    if (!made) return report(made.error()), kInput;
    ::close(made->fd);
    picture = made->path;
  }
  return write_text(picture, trace::to_string(*t, form, picture));
}

}  // namespace

Recording::Recording(fs::path picture) : picture_(std::move(picture)) {
  auto name = picture_.string() + ".recording-XXXXXX";
  if (!::mkdtemp(name.data())) {
    error_ = std::strerror(errno);
    return;
  }
  folder_ = name;
  // Empty, unless a process opens a device.
  if (const auto e = save_file(file(), ""); !e) error_ = e.error().message;
}

Recording::~Recording() {
  std::error_code none;
  if (!folder_.empty()) fs::remove_all(folder_, none);
}

int Recording::draw() {
  std::error_code none;
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder_, none)) files.push_back(file.path());
  std::sort(files.begin(), files.end());
  int code = kOk;
  for (const auto& file : files)
    code = std::max(code, draw_one(file, picture_.string(), file.filename().string().substr(std::strlen(kFile))));
  return code;
}

}  // namespace sdma::tool
