// The terminal in full-screen mode: the alternate screen, no cursor, keys without Enter. Signals that can be caught end
// wait(), so that the destructor restores the terminal.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace wl {

class Terminal {
 public:
  // Whether stdout is a terminal that can be drawn on.
  static bool here();

  Terminal();   // Enters full-screen mode, and reads keys if stdin is a terminal. Only one Terminal may exist at once.
  ~Terminal();  // Restores the terminal and the signal handlers.
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Waits for an event, but no longer than `most`. kTime: the time is over. kDraw: wake() was called, the terminal has
  // a new size, or the program continues after Ctrl-Z. kOther: u or Tab, for the other screen. kQuit: q, Ctrl-C,
  // Ctrl-D, SIGTERM, or the terminal is gone.
  enum class Event { kTime, kDraw, kOther, kQuit };
  Event wait(std::chrono::milliseconds most);
  // Makes wait() return kDraw. May be called from any thread.
  void wake();

  int rows() const;
  int columns() const;
  // Replaces the contents of the screen. The terminal cuts lines that are too long.
  void draw(const std::vector<std::string>& lines);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl
