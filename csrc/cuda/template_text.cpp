#include "cuda/template_text.h"

#include <algorithm>
#include <cctype>

namespace facula::cuda {
namespace {

bool begins_identifier(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool continues_identifier(char c) {
  return begins_identifier(c) || std::isdigit(static_cast<unsigned char>(c));
}

struct Token {
  std::string_view text;
  bool identifier = false;

  bool is(std::string_view other) const { return text == other; }
};

// One token from `at` on, which moves behind it; an empty one at the end. Comments are passed over,
// literals are single tokens.
Token next_token(std::string_view text, size_t& at) {
  auto look = [&](size_t i) { return i < text.size() ? text[i] : '\0'; };
  for (;; ++at) {
    if (at >= text.size()) return {};
    if (look(at) == '/' && look(at + 1) == '/') {
      at = std::min(text.find('\n', at), text.size());
      --at;
    } else if (look(at) == '/' && look(at + 1) == '*') {
      at = std::min(text.find("*/", at + 2), text.size() - 2) + 1;
    } else if (!std::isspace(static_cast<unsigned char>(look(at)))) {
      break;
    }
  }
  const size_t begin = at;
  const char c = text[at++];
  if (begins_identifier(c)) {
    while (continues_identifier(look(at))) ++at;
  } else if (std::isdigit(static_cast<unsigned char>(c))) {
    while (continues_identifier(look(at)) || look(at) == '.' || look(at) == '\'') ++at;
  } else if (c == '"' || c == '\'') {
    while (at < text.size() && text[at] != c) at += text[at] == '\\' ? 2 : 1;
    at = std::min(at + 1, text.size());
  } else if (c == '=' && look(at) == '=') {
    ++at;
  }
  return {text.substr(begin, at - begin), begins_identifier(c)};
}

// The text of a preprocessor line with its continuations, from `at` on, which moves behind it.
std::string_view directive_at(std::string_view text, size_t& at) {
  const size_t begin = at;
  for (;; ++at) {
    at = std::min(text.find('\n', at), text.size());
    if (at == text.size() || text[at - 1] != '\\') break;
  }
  return text.substr(begin, at - begin);
}

// Positions in `tokens` behind the bracket that closes the one at `at`.
size_t behind_brackets(const std::vector<Token>& tokens, size_t at, const char* open,
                       const char* close) {
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    if (tokens[at].is(open)) ++depth;
    if (tokens[at].is(close) && --depth == 0) return at + 1;
  }
  return at;
}

struct Declared {
  std::vector<std::string_view> names;  // none where the declaration is not understood
  std::vector<std::string_view> about;  // types in a function's parameters or a specialisation
  bool record = false;
};

// What a declaration declares.
Declared declared_by(const std::vector<Token>& tokens) {
  size_t at = 0;
  while (at + 1 < tokens.size() && tokens[at].is("template") && tokens[at + 1].is("<")) {
    at = behind_brackets(tokens, at + 1, "<", ">");
  }
  const size_t behind_template = at;
  if (at + 1 >= tokens.size()) return {};
  if (tokens[at].is("using")) {
    if (tokens[at + 1].is("namespace")) return {};
    return {{tokens[at + 1].text}, {}, false};
  }
  const bool record = tokens[at].is("struct") || tokens[at].is("union") || tokens[at].is("class");
  std::string_view last;
  size_t special = 0, special_end = 0;  // the arguments of `last`, where it is specialised
  for (; at < tokens.size(); ++at) {
    const Token& token = tokens[at];
    if (token.is("__global__") || token.is("operator") || token.is("enum") ||
        token.is("static_assert") || token.is("asm")) {
      return {};
    }
    if (token.is("alignas") || token.is("__launch_bounds__") || token.is("__align__")) {
      at = behind_brackets(tokens, at + 1, "(", ")") - 1;
    } else if (token.is("<")) {
      special = at;
      special_end = behind_brackets(tokens, at, "<", ">");
      at = special_end - 1;
    } else if (token.identifier) {
      last = token.text;
      special = special_end = 0;
    } else if (token.is("(") || token.is("=") || token.is(";") || token.is("{") || token.is("[") ||
               (record && token.is(":"))) {
      break;
    }
  }
  if (last.empty()) return {};
  Declared declared = {{last}, {}, record};
  if (at < tokens.size() && tokens[at].is("=")) {  // several variables
    for (size_t i = at + 1; i + 1 < tokens.size(); ++i) {
      if (tokens[i].identifier && tokens[i + 1].is("=")) declared.names.push_back(tokens[i].text);
    }
  }
  auto about = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      auto is_parameter = [&](const Token& token) { return token.is(tokens[i].text); };
      if (tokens[i].identifier &&
          std::none_of(tokens.begin(), tokens.begin() + long(behind_template), is_parameter)) {
        declared.about.push_back(tokens[i].text);
      }
    }
  };
  about(special, special_end);
  if (!record && at < tokens.size() && tokens[at].is("(")) {
    about(at, behind_brackets(tokens, at, "(", ")"));
  }
  return declared;
}

}  // namespace

class TemplateText::Cutter {
 public:
  Cutter(TemplateText& to, std::string_view text) : to_(to), text_(text) {}

  void run() {
    while (next()) {}
  }

 private:
  // Cuts off one piece.
  bool next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    size_t begin = at_;
    Token first = next_token(text_, at_);
    if (first.text.empty()) return false;
    begin = size_t(first.text.data() - text_.data());
    if (first.is("#")) {
      at_ = begin;
      directive();
    } else if (first.is("namespace")) {
      at_ = std::min(text_.find('{', at_), text_.size() - 1) + 1;
      add(text_.substr(begin, at_ - begin), {}, {});
    } else if (first.is("}")) {
      add("}", {}, {});
    } else {
      at_ = begin;
      declaration();
    }
    return true;
  }

  void directive() {
    const std::string_view line = directive_at(text_, at_);
    std::vector<Token> tokens;
    for (size_t i = 1; i < line.size();) tokens.push_back(next_token(line, i));
    while (!tokens.empty() && tokens.back().text.empty()) tokens.pop_back();
    if (tokens.size() < 2 || !tokens[0].is("define")) {
      tokens.clear();
    } else {
      const bool parameters =
          tokens.size() > 4 && tokens[2].is("(") &&
          tokens[2].text.data() == tokens[1].text.data() + tokens[1].text.size();
      declares_[tokens[1].text] = parameters && tokens[3].is("name");
    }
    Declared declared;
    if (!tokens.empty()) declared.names.push_back(tokens[1].text);
    add(line, declared, tokens);
    to_.pieces_.back().directive = true;
  }

  // Up to a semicolon or a closing brace, or the end of a macro's arguments.
  void declaration() {
    const size_t begin = at_;
    std::vector<Token> tokens;
    std::vector<int> branches;  // depths at #if
    int braces = 0, brackets = 0;
    bool done = false;
    while (!done && at_ < text_.size()) {
      const Token token = next_token(text_, at_);
      if (token.text.empty()) break;
      if (token.is("#") && (token.text.data() == text_.data() || token.text.data()[-1] == '\n')) {
        at_ = size_t(token.text.data() - text_.data());
        const std::string_view line = directive_at(text_, at_);
        size_t i = 1;
        const Token kind = next_token(line, i);
        if (kind.text.substr(0, 2) == "if") branches.push_back(braces);
        if (!branches.empty() && kind.text.substr(0, 2) == "el") braces = branches.back();
        if (!branches.empty() && kind.is("endif")) branches.pop_back();
        while (i < line.size()) tokens.push_back(next_token(line, i));
        continue;
      }
      tokens.push_back(token);
      if (token.is("(")) ++brackets;
      if (token.is(")")) --brackets;
      if (token.is("{")) ++braces;
      if (token.is("}")) --braces;
      if (braces > 0 || brackets > 0) continue;
      if (token.is(";")) done = true;
      if (token.is("}") || (token.is(")") && calls_macro(tokens))) {
        size_t after = at_;
        if (next_token(text_, after).is(";")) at_ = after;
        done = true;
      }
    }
    const std::string_view text = text_.substr(begin, at_ - begin);
    auto macro = declares_.find(tokens[0].text);
    if (calls_macro(tokens) && macro != declares_.end()) {
      Declared declared;
      if (macro->second && tokens.size() > 2) declared.names.push_back(tokens[2].text);
      add(text, declared, tokens);
    } else {
      add(text, declared_by(tokens), tokens);
    }
  }

  bool calls_macro(const std::vector<Token>& tokens) const {
    return tokens.size() > 2 && tokens[1].is("(") && declares_.count(tokens[0].text);
  }

  void add(std::string_view text, const Declared& declared, const std::vector<Token>& tokens) {
    Piece piece;
    piece.text = std::string(text);
    for (const Token& token : tokens) {
      if (token.identifier) piece.uses.push_back(to_.word(token.text));
    }
    std::sort(piece.uses.begin(), piece.uses.end());
    piece.uses.erase(std::unique(piece.uses.begin(), piece.uses.end()), piece.uses.end());
    for (std::string_view name : declared.names) {
      const Word word = to_.word(name);
      piece.names.push_back(word);
      to_.declared_[size_t(word)].push_back(int(to_.pieces_.size()));
      if (declared.record) to_.record_[size_t(word)] = true;
    }
    for (std::string_view name : declared.about) piece.about.push_back(to_.word(name));
    to_.pieces_.push_back(std::move(piece));
  }

  TemplateText& to_;
  std::string_view text_;
  size_t at_ = 0;
  std::unordered_map<std::string_view, bool> declares_;  // macros; whether their calls have a name
};

TemplateText::TemplateText(std::string_view text) {
  Cutter(*this, text).run();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    std::vector<Word>& about = pieces_[i].about;
    about.erase(std::remove_if(about.begin(), about.end(),
                               [&](Word word) { return !record_[size_t(word)]; }),
                about.end());
    for (Word word : about) about_[size_t(word)].push_back(int(i));
  }
}

TemplateText::Word TemplateText::word(std::string_view identifier) {
  auto [found, added] = words_.emplace(std::string(identifier), Word(words_.size()));
  if (added) {
    declared_.emplace_back();
    about_.emplace_back();
    record_.push_back(false);
  }
  return found->second;
}

std::string TemplateText::needed_by(const std::vector<std::string_view>& values) const {
  std::vector<bool> kept(pieces_.size()), known(words_.size());
  std::vector<Word> open;
  auto use = [&](Word word) {
    if (!known[size_t(word)]) open.push_back(word);
    known[size_t(word)] = true;
  };
  for (size_t i = 0; i < pieces_.size(); ++i) {
    kept[i] = pieces_[i].names.empty() || pieces_[i].directive;
    if (pieces_[i].names.empty())
      std::for_each(pieces_[i].uses.begin(), pieces_[i].uses.end(), use);
  }
  for (std::string_view value : values) {
    for (size_t at = 0; at < value.size();) {
      const Token token = next_token(value, at);
      auto found = token.identifier ? words_.find(std::string(token.text)) : words_.end();
      if (found != words_.end()) use(found->second);
    }
  }
  auto is_known = [&](Word word) { return known[size_t(word)]; };
  auto keep = [&](int i) {
    const Piece& piece = pieces_[size_t(i)];
    if (kept[size_t(i)] && !piece.directive) return;
    if (std::none_of(piece.names.begin(), piece.names.end(), is_known)) return;
    if (!std::all_of(piece.about.begin(), piece.about.end(), is_known)) return;
    kept[size_t(i)] = true;
    std::for_each(piece.uses.begin(), piece.uses.end(), use);
  };
  while (!open.empty()) {
    const Word word = open.back();
    open.pop_back();
    std::for_each(declared_[size_t(word)].begin(), declared_[size_t(word)].end(), keep);
    std::for_each(about_[size_t(word)].begin(), about_[size_t(word)].end(), keep);
  }
  std::string text;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (kept[i]) text += pieces_[i].text + '\n';
  }
  return text;
}

}  // namespace facula::cuda
