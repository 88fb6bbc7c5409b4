#include "nsp/cli/output.h"

#include <filesystem>
#include <streambuf>

#include "call.h"
#include "nsp/base/error.h"
#include "tiny_runs.h"

namespace nsp {
namespace {

class FullDisk : public std::streambuf {};  // takes no character

std::string folder() {
  const std::string path = temporary_path("folder");
  std::filesystem::create_directories(path);
  return path;
}

TEST(Output, AStandardOutputThatTakesNothingIsAFailure) {
  FullDisk disk;
  for (const Arguments& arguments : {Arguments{"models"}, Arguments{"--help"}}) {
    std::ostream out(&disk);
    std::ostringstream err;
    EXPECT_EQ(run_cli(arguments, {.out = out, .err = err}), 2);
    expect_contains(err.str(), "standard output cannot be written");
  }
}

TEST(Output, APathIsTriedBeforeTheWorkAndLeftAlone) {
  const std::string file = folder() + "/new.json";
  check_writable("--json", file);
  EXPECT_FALSE(std::filesystem::exists(file));
  write_file(file, "old");
  check_writable("--json", file);
  EXPECT_EQ(read_file(file), "old");
  check_writable("--json", "");
  check_writable("--json", "-");
  check_writable("--json", "name_alone.json");
  EXPECT_THROW(check_writable("--json", folder()), BadInput);
  EXPECT_THROW(check_writable("--json", folder() + "/none/new.json"), BadInput);
  EXPECT_THROW(check_writable("--json", file + "/new.json"), BadInput);
}

// The lengths are not even read.
TEST(Output, EveryCommandThatWorksTriesItsPaths) {
  const std::string path = folder();
  for (const std::string command : {"plan", "compare"}) {
    Arguments arguments = tiny4(command, "", {"--batch-tokens", "9", "--json", path});
    expect_bad_input(arguments, "--json " + path + ": is a folder");
  }
  for (const std::string option : {"--json", "--trace"}) {
    expect_bad_input({"simulate", "none.json", option, path}, option + " " + path + ": is a");
  }
}

}  // namespace
}  // namespace nsp
