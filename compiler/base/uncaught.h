// What a program says when an exception ends it.
#pragma once

namespace wl {

// To be called first in main(), with a literal. From then on an exception that nobody caught, in any thread, ends the
// process at once with one line on stderr, "PROGRAM: error: ...", which says what was lacking and what to do, and with
// this exit code. Nothing is unwound, since destructors may wait for what cannot be done any more.
void explain_uncaught(const char* program, int exit_code);

}  // namespace wl
