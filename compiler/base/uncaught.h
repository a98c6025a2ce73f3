// What a program prints when an exception that nobody caught ends it.
#pragma once

namespace wl {

// Call this function first in main(); `program` must be a literal, since only its address is kept. From then on an
// exception that nobody caught, in any thread, ends the process at once with `exit_code` and one line on stderr,
// "PROGRAM: error: ...", which says what was lacking and what to do. No destructor runs, since a destructor may wait
// for work that can no longer be done.
void explain_uncaught(const char* program, int exit_code);

}  // namespace wl
