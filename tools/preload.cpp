// SPDX-License-Identifier: MIT
#include "preload.hpp"

#include "core/descriptor.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSpecial = " :$";  // in LD_PRELOAD

std::string reason() { return std::strerror(errno); }

/// A folder of this user, in a folder that all users share. It is open while this object exists.
class OwnFolder {
 public:
  explicit OwnFolder(const std::string& shared) : path_(fmt::format("{}/sdma-{}", shared, ::geteuid())) {
    struct stat st {};
    if (::stat(shared.c_str(), &st) != 0) {
      error_ = shared + ": " + reason();
    } else if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0) {
      error_ = "any user may rename what is in " + shared;
    } else if (::mkdir(path_.c_str(), kRights) != 0 && errno != EEXIST) {
      error_ = path_ + ": " + reason();
    } else if (!(fd_ = detail::Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)))) {
      error_ = path_ + ": " + reason();
    } else if (::fstat(fd_.get(), &st) != 0 || st.st_uid != ::geteuid()) {
      error_ = path_ + " belongs to another user";
    } else if (::fchmod(fd_.get(), kRights) != 0) {  // whatever the umask is
      error_ = path_ + ": " + reason();
    }
  }

  /// Why links cannot be in it; "" if they can.
  const std::string& error() const noexcept { return error_; }
  /// The path of a link to `target`, which is made unless it exists. On failure, `error` says why, and the path is "".
  std::string link_to(const std::string& target) {
    const auto name = fmt::format("{:016x}", std::hash<std::string>{}(target));
    if (::symlinkat(target.c_str(), fd_.get(), name.c_str()) != 0 && errno != EEXIST)
      return error_ = path_ + ": " + reason(), "";
    std::array<char, PATH_MAX> found{};
    const auto n = ::readlinkat(fd_.get(), name.c_str(), found.data(), found.size());
    if (n < 0 || target != std::string_view(found.data(), static_cast<std::size_t>(n)))
      return error_ = fmt::format("{}/{} is not a link to it", path_, name), "";
    return path_ + '/' + name;
  }

 private:
  static constexpr mode_t kRights = 0755;

  const std::string path_;
  detail::Descriptor fd_{};
  std::string error_{};
};

}  // namespace

Result<std::string, Diagnostic> preload_name(const fs::path& library, const std::vector<std::string>& shared) {
  const auto path = library.string();
  const auto at = path.find_first_of(kSpecial);
  if (at == path.npos) return path;
  std::string why;
  for (const auto& folder : shared) {
    OwnFolder own(folder);
    if (own.error().empty())
      if (const auto link = own.link_to(library.parent_path().string()); !link.empty())
        return link + '/' + library.filename().string();
    why += (why.empty() ? "" : "; ") + own.error();
  }
  return Diagnostic{
      .message = fmt::format("'{}' cannot be preloaded: LD_PRELOAD cannot contain the '{}' of its path, and "
                             "no link to its folder can be made ({})",
                             path, path[at], why),
      .hint = "move this program and the library to folders whose names contain no blank, colon or $"};
}

void preload(const std::string& name) {
  const char* others = std::getenv("LD_PRELOAD");
  ::setenv("LD_PRELOAD", (name + (others && *others ? ":" + std::string(others) : "")).c_str(), 1);
}

}  // namespace sdma::tool
