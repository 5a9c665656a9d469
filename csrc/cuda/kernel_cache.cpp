#include "cuda/kernel_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "cuda/libraries.h"
#include "cuda/sha256.h"

namespace facula::cuda {
namespace {

// A file is kMagic, the SHA-256 of the image, then the image. Readers trust only what matches, so
// truncated, foreign and damaged files count as absent.
constexpr char kMagic[8] = {'f', 'a', 'c', 'u', 'l', 'a', 'k', '1'};
constexpr size_t kHeader = sizeof kMagic + 32;

void make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0700);
  }
  mkdir(path.c_str(), 0700);
}

bool write_all(int file, const char* data, size_t size) {
  while (size > 0) {
    ssize_t written = write(file, data, size);
    if (written <= 0) return false;
    data += written;
    size -= size_t(written);
  }
  return true;
}

std::string header_of(const std::string& image) {
  auto digest = sha256(image);
  std::string header(kMagic, sizeof kMagic);
  header.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return header;
}

bool read_kernel(const std::string& directory, const std::string& key, std::string* image) {
  if (directory.empty()) return false;
  int file = open((directory + "/" + key).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::string content;
  char buffer[65536];
  ssize_t count;
  while ((count = read(file, buffer, sizeof buffer)) > 0) content.append(buffer, size_t(count));
  close(file);
  if (count < 0 || content.size() <= kHeader) return false;
  std::string body = content.substr(kHeader);
  if (content.compare(0, kHeader, header_of(body)) != 0) return false;
  *image = std::move(body);
  return true;
}

}  // namespace

std::string ready_kernel_directory() {
  const char* variable = std::getenv("FACULA_READY_KERNELS");
  return variable ? variable : own_directory() + "/_kernels/ready";
}

std::string kernel_cache_directory() {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  if (std::string own = variable("FACULA_CACHE_DIR"); !own.empty()) return own + "/kernels";
  if (std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/facula/kernels";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.cache/facula/kernels";
  return "";
}

std::string kernel_cache_key(const std::string& everything) {
  return to_hex(sha256(everything).data(), 20);
}

bool read_cached_kernel(const std::string& key, std::string* image) {
  return read_kernel(kernel_cache_directory(), key, image);
}

bool read_ready_kernel(const std::string& key, std::string* image) {
  return read_kernel(ready_kernel_directory(), key, image);
}

void write_cached_kernel(const std::string& key, const std::string& image) {
  std::string directory = kernel_cache_directory();
  if (directory.empty()) return;
  make_directories(directory);
  // Written under a name of its own and renamed, so that readers see all of it or nothing.
  static std::atomic<unsigned> counter{0};
  std::string path = directory + "/" + key;
  std::string temporary = directory + "/." + key + "." + std::to_string(getpid()) + "." +
                          std::to_string(counter.fetch_add(1));
  int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return;
  std::string header = header_of(image);
  bool complete =
      write_all(file, header.data(), header.size()) && write_all(file, image.data(), image.size());
  complete = close(file) == 0 && complete;
  if (!complete || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

}  // namespace facula::cuda
