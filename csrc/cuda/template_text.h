// The text of a kernel template, cut into declarations, so that a kernel is compiled from those
// that it needs: reading the others would take the compiler longer than the kernel itself.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace facula::cuda {

class TemplateText {
 public:
  // `text` has no #include lines. Declarations are told apart by their names, without regard to
  // namespaces and overloads. A call of a macro whose first parameter is `name` declares what its
  // first argument says; calls of other macros, and what is not understood, are always needed.
  explicit TemplateText(std::string_view text);

  // The declarations that the kernel needs, if it is specialised by macros with these values.
  std::string needed_by(const std::vector<std::string_view>& values) const;

 private:
  using Word = int;
  struct Piece {
    std::string text;
    std::vector<Word> names;  // empty: always needed
    std::vector<Word> uses;
    bool directive = false;  // stays in the text, needed or not
  };
  class Cutter;

  Word word(std::string_view identifier);

  std::vector<Piece> pieces_;
  std::unordered_map<std::string, Word> words_;
  std::vector<std::vector<int>> declared_;  // by word: the pieces that declare it
};

}  // namespace facula::cuda
