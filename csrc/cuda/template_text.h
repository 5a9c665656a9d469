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
  // first argument says; calls of other macros, and what is not understood, are always needed. A
  // function with parameters of a record that the text declares, and a specialisation for one, are
  // needed if something else names the record: without it nobody can call or ask for them.
  explicit TemplateText(std::string_view text);

  // The declarations that the kernel needs, if it is specialised by macros with these values.
  std::string needed_by(const std::vector<std::string_view>& values) const;

 private:
  using Word = int;
  struct Piece {
    std::string text;
    std::vector<Word> names;  // empty: always needed
    std::vector<Word> uses;
    std::vector<Word> about;  // records without which it is not needed
    bool directive = false;   // stays in the text, needed or not
  };
  class Cutter;

  Word word(std::string_view identifier);

  std::vector<Piece> pieces_;
  std::unordered_map<std::string, Word> words_;
  std::vector<std::vector<int>> declared_;  // by word: the pieces that declare it
  std::vector<std::vector<int>> about_;     // by word: the pieces that are not needed without it
  std::vector<bool> record_;                // by word: whether it is the name of a record
};

}  // namespace facula::cuda
