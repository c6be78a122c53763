// Tests of the JUnit report: escaping, one element per verdict, counts equal to the records.
#include "reports/junit.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/reports/example.h"

namespace assay {
namespace {

const nlohmann::json kEnvironment = {{"host", {{"cpu", "<fast & \"cheap\">"}}}};

TEST(Junit, EscapesMarkupAndReplacesWhatXmlForbids) {
  EXPECT_EQ(xml_text("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&apos;");
  EXPECT_EQ(xml_text("line\n\ttab\r"), "line&#10;&#9;tab&#13;");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(xml_text(std::string("nul\0esc\x1b[K", 10)), "nul" + bad + "esc" + bad + "[K");
  EXPECT_EQ(xml_text("\xff"), bad);
  EXPECT_EQ(xml_text("\xc0\xaf"), bad + bad);                      // overlong '/'
  EXPECT_EQ(xml_text("\xe0\x80\xaf"), bad + bad + bad);            // overlong in three bytes
  EXPECT_EQ(xml_text("\xed\xa0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(xml_text("\xef\xbf\xbf"), bad + bad + bad);            // U+FFFF
  EXPECT_EQ(xml_text("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // beyond U+10FFFF
  EXPECT_EQ(xml_text("cut \xe2\x82"), "cut " + bad + bad);
  EXPECT_EQ(xml_text("\xe2\x82\xac \xf0\x9f\x98\x80 \xc3\xa9"), "\xe2\x82\xac \xf0\x9f\x98\x80 \xc3\xa9");
}

TEST(Junit, CountsAreThoseOfTheRecords) {
  const std::string xml = junit_report(one_of_each(), kEnvironment);
  EXPECT_NE(xml.find("<testsuites name=\"assay\" tests=\"9\" failures=\"2\" errors=\"2\" skipped=\"4\""),
            std::string::npos)
      << xml;
  EXPECT_EQ(count_of(xml, "<testcase "), 9U);
  EXPECT_EQ(count_of(xml, "<failure "), 2U);
  EXPECT_EQ(count_of(xml, "</failure>"), 2U);
  EXPECT_EQ(count_of(xml, "<error "), 2U);
  EXPECT_EQ(count_of(xml, "<skipped "), 4U);
  EXPECT_EQ(count_of(xml, "</testcase>"), 8U);
}

TEST(Junit, OneSuitePerKernelAndSuite) {
  const std::string xml =
      junit_report({example_record(CaseVerdict::kClean), example_record(CaseVerdict::kClean, "b", "real"),
                    example_record(CaseVerdict::kFinding)},
                   kEnvironment);
  EXPECT_EQ(count_of(xml, "<testsuite "), 2U);
  EXPECT_NE(xml.find("<testsuite name=\"edge/fa2_bf16\" tests=\"2\" failures=\"1\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("<testsuite name=\"real/b\" tests=\"1\" failures=\"0\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("<property name=\"host.cpu\" value=\"&lt;fast &amp; &quot;cheap&quot;&gt;\"/>"), std::string::npos)
      << xml;
}

TEST(Junit, AFailureCarriesModeEvidenceAndReproLine) {
  const std::string xml = junit_report({example_record(CaseVerdict::kFinding)}, kEnvironment);
  EXPECT_NE(xml.find("<failure type=\"zero_rows\" message=\"finding: zero_rows: 3 of 6 rows are exactly 0 &amp; the "
                     "truth is not (this input cannot tell it from other_zero_rows)\">"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("assay repro &apos;attention hq=2"), std::string::npos) << xml;
  EXPECT_NE(xml.find("used=31.25\""), std::string::npos) << xml;
}

TEST(Junit, ASkippedCaseKeepsItsVerdictAndReason) {
  const std::string xml = junit_report({example_record(CaseVerdict::kVacuous)}, kEnvironment);
  EXPECT_NE(xml.find("<skipped message=\"vacuous: head dim 16 &lt; 32 is &quot;too small&quot;\"/>"), std::string::npos)
      << xml;
}

}  // namespace
}  // namespace assay
