// Runs the program from a shell, as a user does: exit code and everything it prints.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace assay {

struct Outcome {
  int exit = -1;
  std::string text;  ///< standard output and error together
};

inline Outcome shell(const std::string& command) {
  Outcome run;
  std::FILE* pipe = popen(("cd / && (" + command + ") 2>&1").c_str(), "r");
  if (pipe == nullptr) return run;
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) run.text.append(buffer, n);
  const int status = pclose(pipe);
  run.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

inline Outcome assay(const std::string& arguments) { return shell(std::string(ASSAY_PROGRAM) + " " + arguments); }

}  // namespace assay
