#include "cuda/jit.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_set>

#include "cuda/kernel_cache.h"
#include "cuda/libraries.h"
#include "cuda/nvrtc.h"
#include "cuda/template_text.h"

namespace facula::cuda {
namespace {

// Part of every cache key; to be raised when images of the same text must not be used any more.
constexpr const char* kCacheFormat = "facula-kernels-2";

std::vector<std::string> compile_options(NvrtcVersion version) {
  std::vector<std::string> options = {"--std=c++17", "--device-as-default-execution-space"};
  // Without the declarations of textures, of the run-time library and the like.
  if (version.major * 100 + version.minor >= 1204) options.push_back("--minimal");
  return options;
}

struct Templates {
  std::mutex mutex;
  std::string directory;
  std::map<std::string, TemplateText> read;  // by name, with what they include
};

Templates& templates() {
  static Templates* instance = new Templates;
  return *instance;
}

std::string default_directory() {
  const char* variable = std::getenv("FACULA_KERNEL_DIR");
  return variable && *variable ? variable : own_directory() + "/_kernels";
}

bool read_file(const std::string& path, std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  char buffer[16384];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) content.append(buffer, n);
  std::fclose(file);
  return true;
}

// Appends the file with its quoted includes, each of them once.
void expand(const std::string& directory, const std::string& name, std::set<std::string>& seen,
            std::string& out) {
  if (!seen.insert(name).second) return;
  std::string content;
  if (!read_file(directory + "/" + name, content)) {
    throw CudaError("The kernel template " + name + " is missing from " + directory +
                    "; reinstall facula or set FACULA_KERNEL_DIR");
  }
  for (size_t at = 0; at < content.size();) {
    const size_t newline = std::min(content.find('\n', at), content.size());
    const std::string line = content.substr(at, newline - at);
    at = newline + 1;
    constexpr std::string_view kInclude = "#include \"";
    if (line.rfind(kInclude, 0) == 0) {
      size_t end = line.find('"', kInclude.size());
      expand(directory, line.substr(kInclude.size(), end - kInclude.size()), seen, out);
    } else if (line != "#pragma once") {
      out += line;
      out += '\n';
    }
  }
}

const TemplateText& template_text(const std::string& name) {
  Templates& t = templates();
  std::lock_guard lock(t.mutex);
  if (t.directory.empty()) t.directory = default_directory();
  auto found = t.read.find(name);
  if (found != t.read.end()) return found->second;
  std::set<std::string> seen;
  std::string text;
  expand(t.directory, name, seen, text);
  return t.read.try_emplace(name, text).first->second;  // map nodes do not move
}

CuModule load_module(const std::string& image, const std::string& name) {
  char log[4096] = "";
  int options[] = {5, 6};  // CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
  void* values[] = {log, reinterpret_cast<void*>(uintptr_t(sizeof log))};
  CuModule module = nullptr;
  CuResult result = driver().cuModuleLoadDataEx(&module, image.data(), 2, options, values);
  if (result != kCuSuccess) {
    try {
      throw_driver_error(result, "cuModuleLoadDataEx");
    } catch (const CudaError& error) {
      throw CudaError(std::string(error.what()) + " while loading kernel '" + name + "'" +
                          (*log ? std::string(":\n") + log : ""),
                      result);
    }
  }
  return module;
}

// Threads that compile what will be wanted soon. The process waits for them before it ends: what
// NVRTC and the driver take down then must not be at work.
class ThreadsAhead {
 public:
  static ThreadsAhead& instance() {
    static ThreadsAhead* threads = [] {
      nvrtc_version();  // loaded before: its own clean-up comes after ours
      std::atexit([] { instance().wait(); });
      return new ThreadsAhead;
    }();
    return *threads;
  }

  template <class Work>
  void start(Work work) {
    change(+1);
    try {
      std::thread([this, work = std::move(work)] {
        work();
        change(-1);
      }).detach();
    } catch (const std::system_error&) {  // no more threads: whoever wants the kernel compiles it
      change(-1);
    }
  }

 private:
  void change(int by) {
    std::lock_guard lock(mutex_);
    running_ += by;
    idle_.notify_all();
  }
  void wait() {
    if (getpid() != process_) return;  // threads do not survive a fork
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return running_ == 0; });
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  int running_ = 0;
  const pid_t process_ = getpid();
};

bool is_identifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

}  // namespace

void set_kernel_directory(const std::string& directory) {
  std::lock_guard lock(templates().mutex);
  templates().directory = directory;
  templates().read.clear();
}

std::string assemble(const KernelText& text) {
  std::string source = "#define FACULA_NAME " + text.entry + "\n";
  std::vector<std::string_view> values;
  for (const auto& [name, value] : text.defines) {
    values.push_back(value);
    source += "#define " + name + " ";
    for (char c : value) source += c == '\n' ? ' ' : c;  // a macro ends with its line
    source += '\n';
  }
  return source + template_text(text.file).needed_by(values);
}

std::string kernel_name(const char* operator_name) {
  std::string name = "facula_";
  for (const char* c = operator_name; c && *c; ++c) name += is_identifier(*c) ? *c : '_';
  return name;
}

std::string formula_body(const std::string& expression) {
  std::string out;
  bool statement = false;
  const size_t size = expression.size();
  auto at = [&](size_t i) { return i < size ? expression[i] : '\0'; };
  for (size_t i = 0; i < size;) {
    const char c = at(i);
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) ||
                       (c == '.' && std::isdigit(static_cast<unsigned char>(at(i + 1))));
    size_t end = i + 1;
    if (digit) {
      bool hexadecimal = c == '0' && (at(i + 1) == 'x' || at(i + 1) == 'X');
      bool floating = false;
      for (end = i; is_identifier(at(end)) || at(end) == '.' ||
                    ((at(end) == '+' || at(end) == '-') && !hexadecimal &&
                     (at(end - 1) == 'e' || at(end - 1) == 'E'));
           ++end) {
        floating = floating || at(end) == '.' || at(end) == 'e' || at(end) == 'E';
      }
      std::string literal = expression.substr(i, end - i);
      bool suffixed = literal.back() == 'f' || literal.back() == 'F';
      out += floating && !hexadecimal && !suffixed ? "R(" + literal + ")" : literal;
    } else if (is_identifier(c)) {
      while (is_identifier(at(end))) ++end;
      std::string word = expression.substr(i, end - i);
      statement = statement || word == "return";
      out += word;
    } else {
      out += c;
    }
    i = end;
  }
  return statement ? out : "return " + out + ";";
}

std::string compile_kernel(const KernelText& text, const std::string& target, bool use_cache) {
  const std::string source = assemble(text);
  const NvrtcVersion version = nvrtc_version();
  std::string everything = std::string(kCacheFormat) + "\n" + target + "\n";
  const std::vector<std::string> options = compile_options(version);
  for (const std::string& option : options) everything += option + "\n";
  // Each NVRTC has its own images in the cache; those that came with the package serve all.
  const std::string key = kernel_cache_key(everything + source);
  const std::string cached =
      key + "-" + std::to_string(version.major) + "." + std::to_string(version.minor);
  std::string image;
  if (use_cache && (read_ready_kernel(key, &image) || read_cached_kernel(cached, &image)))
    return image;
  image = nvrtc_compile(text.entry, source, target, options);
  write_cached_kernel(cached, image);
  return image;
}

CuFunction Kernel::load(int device, const KernelText& text) {
  std::lock_guard lock(mutex_);
  if (CuFunction ready = functions_[device].load(std::memory_order_acquire)) return ready;
  use_device(device);
  RelaxedCapture relaxed;  // loading is no work of a stream
  const DeviceProperties& properties = device_properties(device);
  const std::string target =
      nvrtc_target(properties.major * 10 + properties.minor) + (text.specific ? "a" : "");
  CuModule module;
  try {
    module = load_module(compile_kernel(text, target), text.entry);
  } catch (const CudaError& error) {
    // An image from the cache that this driver refuses is made again, once.
    if (error.code() < 200 || error.code() > 230) throw;
    module = load_module(compile_kernel(text, target, false), text.entry);
  }
  CuFunction function = nullptr;
  FACULA_CU(cuModuleGetFunction, &function, module, text.entry.c_str());
  functions_[device].store(function, std::memory_order_release);
  return function;
}

void Kernel::load_ahead(int device, KernelText text) {
  if (std::thread::hardware_concurrency() < 2) return;
  ThreadsAhead::instance().start([this, device, text = std::move(text)] {
    try {
      load(device, text);
    } catch (...) {
      // Whoever wants the kernel meets the same error.
    }
  });
}

Kernel& KernelTable::insert(std::atomic<Entry*>& bucket, const KernelKey& key) {
  std::lock_guard lock(mutex_);
  Entry* head = bucket.load(std::memory_order_acquire);
  for (Entry* e = head; e; e = e->next) {
    if (e->key == key) return e->kernel;
  }
  Entry* entry = new Entry{key, head, {}};
  bucket.store(entry, std::memory_order_release);
  return entry->kernel;
}

const char* intern(const std::string& text) {
  static std::mutex mutex;
  static auto* texts = new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return texts->insert(text).first->c_str();
}

}  // namespace facula::cuda
