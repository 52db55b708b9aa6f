// tests/chat/chat_goldens.h: reads tests/data/chat/templates.json.
#pragma once

#include <openssl/evp.h>

#include <cctype>
#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/message.h"
#include "chat/template.h"

namespace hocket::testing {

struct Golden {
  Json json;
  std::string bos, eos;
  std::time_t now = 0;  // the goldens' clock, in local time

  // What transformers passes.
  Json python_variables(const std::string& conversation) const {
    const Json& c = json["conversations"][conversation];
    Json out = {{"messages", c["messages"]}, {"tools", c.value("tools", Json())}, {"documents", nullptr}};
    out["add_generation_prompt"] = true;
    out["bos_token"] = bos;
    out["eos_token"] = eos;
    if (c.contains("kwargs")) {
      for (const auto& [key, item] : c["kwargs"].items()) out[key] = item;
    }
    return out;
  }

  TemplateInput input(const std::string& conversation) const {
    const Json& c = json["conversations"][conversation];
    TemplateInput out;
    for (const Json& m : c["messages"]) {
      Message message;
      message.role = m["role"];
      if (m["content"].is_string()) message.content = m["content"].get<std::string>();
      message.reasoning = m.value("reasoning_content", "");
      message.name = m.value("name", "");
      message.tool_call_id = m.value("tool_call_id", "");
      for (const Json& call : m.value("tool_calls", Json::array())) {
        const Json& arguments = call["function"]["arguments"];
        message.tool_calls.push_back({call["id"], call["function"]["name"],
                                      arguments.is_string() ? arguments.get<std::string>() : dump_json(arguments)});
      }
      out.messages.push_back(std::move(message));
    }
    for (const Json& t : c.value("tools", Json::array())) {
      const Json& f = t["function"];
      out.tools.push_back({f["name"], f["description"], dump_json(f["parameters"]), false});
    }
    out.continue_final_message = c.value("continue_final_message", false);
    if (c.contains("kwargs")) {
      out.kwargs_json = dump_json(c["kwargs"]);
      out.enable_thinking = c["kwargs"].value("enable_thinking", true);
    }
    out.now = std::chrono::system_clock::from_time_t(now);
    return out;
  }
};

inline const Golden& chat_goldens() {
  static const Golden golden = [] {
    Golden g;
    std::ifstream in(std::string(HOCKET_TEST_DATA) + "/chat/templates.json");
    g.json = Json::parse(in);
    g.bos = g.json["bos_token"];
    g.eos = g.json["eos_token"];
    std::tm time{};
    const std::string text = g.json["fixed_time"];
    strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
    time.tm_isdst = -1;
    g.now = std::mktime(&time);
    return g;
  }();
  return golden;
}

// Lower-case hexadecimal, as the goldens name the texts that they were made from.
inline std::string sha256(const std::string& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &n, EVP_sha256(), nullptr) != 1) return "";
  std::string out;
  for (unsigned int i = 0; i < n; ++i) {
    out += "0123456789abcdef"[digest[i] >> 4];
    out += "0123456789abcdef"[digest[i] & 15];
  }
  return out;
}

// Indices of the templates that are files of the source archive.
inline std::vector<std::size_t> golden_templates() {
  std::vector<std::size_t> out;
  const Json& list = chat_goldens().json["templates"];
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i]["template"] != "smollm2-own") out.push_back(i);
  }
  return out;
}

inline std::string golden_test_name(std::size_t index) {
  std::string name = chat_goldens().json["templates"][index]["template"];
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace hocket::testing
