#include "nsp/base/error.h"

namespace nsp {

void bad_input(std::string_view field, std::string_view value, std::string_view remedy) {
  throw BadInput(std::string(field) + " " + std::string(value) + ": " + std::string(remedy));
}

void bad_input(std::string_view field, long long value, std::string_view remedy) {
  bad_input(field, std::to_string(value), remedy);
}

}  // namespace nsp
