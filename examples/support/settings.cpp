#include "support/settings.h"

#include <cmath>
#include <cstdio>

#include "linnet/core/error.h"
#include "support/program.h"

namespace example {
namespace {

template <class T>
void read(const Json& json, const std::string& file, const std::string& name, const char* wanted, T& value,
          bool (*fits)(const Json&)) {
  LINNET_CHECK(json.contains(name), file, ": \"", name, "\" is missing; is it from a ", program_name(), " run?");
  const Json& given = json.at(name);
  LINNET_CHECK(fits(given), file, ": \"", name, "\" is ", given.dump(), ", wanted: ", wanted);
  given.get_to(value);
}

}  // namespace

std::string flag_name(std::string setting) {
  for (char& c : setting) c = c == '_' ? '-' : c;
  return "--" + setting;
}

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void check_between(const char* flag, int64_t value, int64_t least, int64_t most) {
  LINNET_CHECK(value >= least, flag, " ", value, ": must be at least ", least);
  LINNET_CHECK(value <= most, flag, " ", value, ": must be at most ", most);
}

void check_number(const char* flag, double value, double low, double high, const char* wanted) {
  LINNET_CHECK(std::isfinite(value) && value >= low && value <= high, flag, " ", shown(value), ": must be ", wanted);
}

void add_setting(CLI::App& app, const std::string& name, const std::string& help, Json& given, int64_t) {
  const std::string flag = flag_name(name);
  app.add_option_function<std::string>(
         flag, [flag, name, &given](const std::string& text) { given[name] = parse_integer(flag, text); }, help)
      ->type_name("INT");
}

void add_setting(CLI::App& app, const std::string& name, const std::string& help, Json& given, double) {
  app.add_option_function<double>(
      flag_name(name), [name, &given](double value) { given[name] = value; }, help);
}

void add_setting(CLI::App& app, const std::string& name, const std::string& help, Json& given, const std::string&) {
  app.add_option_function<std::string>(
      flag_name(name), [name, &given](const std::string& text) { given[name] = text; }, help);
}

// nlohmann's own conversions would cut 8.7 to 8 and take true for 1.
void read_setting(const Json& json, const std::string& file, const std::string& name, int64_t& value) {
  read(json, file, name, "a whole number below 2^63", value, [](const Json& given) {
    return given.is_number_integer() && (!given.is_number_unsigned() || given.get<uint64_t>() <= INT64_MAX);
  });
}

void read_setting(const Json& json, const std::string& file, const std::string& name, double& value) {
  read(json, file, name, "a number", value, [](const Json& given) { return given.is_number(); });
}

void read_setting(const Json& json, const std::string& file, const std::string& name, std::string& value) {
  read(json, file, name, "text", value, [](const Json& given) { return given.is_string(); });
}

void check_differences(const Json& before, const Json& after, const std::string& folder,
                       std::initializer_list<std::string_view> may_differ, const std::string& advice) {
  const auto text = [](const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
  for (const auto& [name, value] : after.items()) {
    if (value == before.at(name) || std::find(may_differ.begin(), may_differ.end(), name) != may_differ.end()) continue;
    linnet::fail(flag_name(name), " ", text(value), ": the run in ", folder, " has ", text(before.at(name)), "; ",
                 advice);
  }
}

CLI::Option* add_folder(CLI::App& app, const std::string& flag, std::string& folder, const std::string& help) {
  return app.add_option(flag, folder, help)->check([](const std::string& given) {
    return given.empty() ? "names no folder" : "";
  });
}

}  // namespace example
