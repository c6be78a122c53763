// Verb over CLI11.
#include "cli/verb.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

#include "oracle/truth.h"

namespace assay {

Setting& Setting::required() {
  option_->required();
  return *this;
}

Setting& Setting::range(long low, long high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Setting& Setting::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Setting& Setting::non_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Setting& Setting::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Setting& Setting::one_each() {
  option_->allow_extra_args(false);
  return *this;
}

Verb Verb::add(const std::string& name, const std::string& help) { return Verb(app_->add_subcommand(name, help)); }

Verb Verb::group(const std::string& name, const std::string& help) {
  const auto same = app_->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; });
  return Verb(same.empty() ? app_->add_subcommand(name, help)->require_subcommand(1) : same[0]);
}

template <class T>
Setting Verb::option(const std::string& name, T& value, const std::string& help) {
  return Setting(app_->add_option(name, value, help));
}
template Setting Verb::option(const std::string&, std::string&, const std::string&);
template Setting Verb::option(const std::string&, std::vector<std::string>&, const std::string&);
template Setting Verb::option(const std::string&, int&, const std::string&);
template Setting Verb::option(const std::string&, unsigned&, const std::string&);
template Setting Verb::option(const std::string&, std::int64_t&, const std::string&);
template Setting Verb::option(const std::string&, std::uint64_t&, const std::string&);
template Setting Verb::option(const std::string&, double&, const std::string&);
template Setting Verb::option(const std::string&, std::optional<double>&, const std::string&);

template <class T>
void Verb::choice(const std::string& name, T& value, const std::vector<std::pair<std::string, T>>& words, const std::string& help) {
  app_->add_option(name, value, help)->transform(CLI::CheckedTransformer(words, CLI::ignore_case));
}
template void Verb::choice(const std::string&, Level&, const std::vector<std::pair<std::string, Level>>&, const std::string&);

void Verb::flag(const std::string& name, bool& value, const std::string& help) { app_->add_flag(name, value, help); }

void Verb::callback(std::function<void()> run) { app_->callback(std::move(run)); }

}  // namespace assay
