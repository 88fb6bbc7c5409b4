// Strict reading of JSON: a missing, unknown or wrongly typed field is BadInput that names it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace nsp {

using Json = nlohmann::json;

// Parses text; `what` names the source in messages ("plan.json"). Throws BadInput.
Json parse_json(std::string_view text, std::string_view what);

// Reads a whole file; throws BadInput when it cannot be opened.
std::string read_file(const std::string& path);
Json load_json(const std::string& path);
// Throws Error when the file cannot be written.
void write_file(const std::string& path, std::string_view text);

// One JSON object with exactly the named fields. `where` is the path shown in messages.
class JsonReader {
 public:
  // Throws BadInput unless `object` is an object whose fields are all among `fields`.
  JsonReader(const Json& object, std::string where, std::initializer_list<std::string_view> fields);

  bool has(std::string_view field) const;
  const Json& at(std::string_view field) const;
  const Json& array(std::string_view field) const;
  std::int64_t integer(std::string_view field) const;
  double number(std::string_view field) const;
  bool boolean(std::string_view field) const;
  std::string text(std::string_view field) const;
  std::string where(std::string_view field) const;

 private:
  const Json& object_;
  std::string where_;
};

}  // namespace nsp
