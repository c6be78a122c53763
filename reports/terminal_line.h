// TerminalLine: one line on a terminal that is rewritten in place.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace assay {

class TerminalLine {
 public:
  explicit TerminalLine(std::FILE* stream);
  ~TerminalLine();  ///< clears the line
  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  bool visible() const { return visible_; }  ///< the stream is a terminal; else nothing is ever written
  std::size_t width() const;                 ///< columns that a text may have
  void show(const std::string& text);
  void clear();

 private:
  std::FILE* stream_;
  bool visible_, written_ = false;
};

}  // namespace assay
