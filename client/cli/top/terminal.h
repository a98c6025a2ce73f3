// The terminal while a program draws on all of it: the other screen, no cursor, keys without Enter. What was there
// before comes back at the end, by whatever signal that can be caught it comes.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace wl {

class Terminal {
 public:
  // Whether stdout is a terminal that one can draw on.
  static bool here();

  Terminal();   // Takes the terminal of stdout, and stdin if that is one. Only one may exist at a time.
  ~Terminal();  // Gives it back.
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Waits for `most` or until something happens: kQuit is the key q, Ctrl-C, Ctrl-D, SIGTERM or a terminal that went
  // away; kDraw is wake(), a new size, or the program that goes on after Ctrl-Z.
  enum class Event { kTime, kDraw, kQuit };
  Event wait(std::chrono::milliseconds most);
  // Makes wait() return kDraw. Any thread.
  void wake();

  int rows() const;
  int columns() const;
  // Replaces what is on the screen. Lines longer than the screen is wide are cut by the terminal.
  void draw(const std::vector<std::string>& lines);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl
