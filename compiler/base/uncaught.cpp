#include "compiler/base/uncaught.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

namespace wl {
namespace {

const char* name_of_program = "";
int code_of_program = 1;

void say(const char* what, const char* more) {
  std::fprintf(stderr, "%s: error: %s%s\n", name_of_program, what, more);
}

// Prints the exception that is being handled. If there is none, the program itself has called std::terminate().
void say_current() {
  if (std::current_exception() == nullptr) return say("it has ended itself, which is a fault of its own", "");
  try {
    throw;
  } catch (const std::bad_alloc&) {
    say("there is not enough memory; see `free` and `ulimit -v`", "");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      say("the system gives this process no further thread or no memory for one; see `ulimit -u` and `ulimit -v`", "");
    else
      say("the system refused what was needed: ", error.what());
  } catch (const std::exception& error) {
    say("a fault of its own: ", error.what());
  } catch (...) {
    say("a fault of its own", "");
  }
}

[[noreturn]] void end_now() {
  say_current();
  std::_Exit(code_of_program);
}

}  // namespace

void explain_uncaught(const char* program, int exit_code) {
  name_of_program = program;
  code_of_program = exit_code;
  std::set_terminate(end_now);
}

}  // namespace wl
