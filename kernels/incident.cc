// Reading the kernel log and nvidia-smi after a failure; both may be closed to this user.
#include "kernels/incident.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace assay {
namespace {

/// Every record that the kernel log still holds, one a line; empty if it cannot be read.
std::string kernel_log() {
  const int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char record[8192];  // the kernel's own limit of one record
  for (ssize_t n = 0; (n = read(fd, record, sizeof record)) != 0;) {
    if (n < 0 && errno != EPIPE) break;  // EPIPE: records were overwritten meanwhile, the next read goes on
    if (n > 0) text.append(record, static_cast<std::size_t>(n));
  }
  close(fd);
  return text;
}

/// Uncorrected ECC errors since the driver was loaded, over all devices; 0 if nobody says.
long uncorrected_ecc_errors() {
  std::FILE* pipe =
      popen("nvidia-smi --query-gpu=ecc.errors.uncorrected.volatile.total --format=csv,noheader 2>/dev/null", "r");
  if (pipe == nullptr) return 0;
  long total = 0;
  char line[128];
  while (std::fgets(line, sizeof line, pipe) != nullptr) total += std::strtol(line, nullptr, 10);
  pclose(pipe);
  return total;
}

}  // namespace

// A record reads "...;NVRM: Xid (PCI:0000:06:00): 31, pid=4242, name=assay, Ch 00000008, ...".
std::string last_xid(std::string_view log, pid_t process) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  const std::string ours = "pid=" + std::to_string(process) + ",";
  for (std::size_t at = log.rfind(kMark); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : log.rfind(kMark, at - 1)) {
    const std::string_view line = log.substr(at, log.find('\n', at) - at);
    const std::size_t number = line.find("): ");
    const std::size_t comma = line.find(", ", number == std::string_view::npos ? line.size() : number);
    if (comma == std::string_view::npos || line.find(ours) == std::string_view::npos) continue;
    return "Xid " + std::string(line.substr(number + 3, comma - number - 3)) + ": " +
           std::string(line.substr(comma + 2));
  }
  return {};
}

std::string incident_notes(pid_t process) {
  std::string notes;
  if (const std::string xid = last_xid(kernel_log(), process); !xid.empty()) notes += "; " + xid;
  if (const long errors = uncorrected_ecc_errors(); errors > 0)
    notes += "; " + std::to_string(errors) + " uncorrected ECC errors since the driver was loaded";
  return notes;
}

}  // namespace assay
