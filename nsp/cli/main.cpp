#include <iostream>

#include "nsp/cli/cli.h"

int main(int argc, char** argv) {
  return nsp::run_cli({argv + 1, argv + argc}, {.out = std::cout, .err = std::cerr});
}
