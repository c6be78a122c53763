// Temporary file and rename: a full disk or an end in the middle leaves the old file.
#include "reports/write_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "oracle/error.h"

namespace assay {

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  std::error_code failed;
  if (out) {
    std::filesystem::rename(temporary, path, failed);
    if (!failed) return;
    errno = failed.value();
  }
  const std::string why = std::strerror(errno);
  std::filesystem::remove(temporary, failed);
  throw EnvironmentError(path + ": cannot be written: " + why);
}

}  // namespace assay
